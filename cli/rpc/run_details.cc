#include "cli/rpc/run_details.h"

#include "cli/rpc/session.h"
#include "services/common/base/status_macros.h"

namespace muster::cli {
namespace {

constexpr absl::Duration kLimit = absl::Seconds(2);
constexpr int kPage = 10'000;

}  // namespace

absl::StatusOr<std::vector<v1::DamagedResult>> FindDamage(Client& client, const v1::Run& run) {
  std::vector<v1::DamagedResult> damaged;
  const auto all = static_cast<size_t>(run.damaged_results());
  v1::ListResultsRequest request;
  request.set_run(run.id());
  request.set_page_size(kPage);
  while (damaged.size() < all) {
    ASSIGN_OR_RETURN(const auto page, client.ListResults(request));
    for (const v1::Result& result : page.results()) {
      if (result.damage().empty()) continue;
      v1::DamagedResult& found = damaged.emplace_back();
      *found.mutable_key() = result.key();
      found.set_generation(result.generation());
      found.set_damage(result.damage());
      found.set_redelivery(result.redelivery());
    }
    request.set_page_token(page.next_page_token());
    if (request.page_token().empty()) break;
  }
  // The number includes the archive. A run without one may have had a result repaired meanwhile.
  if (damaged.size() < all && run.state() == v1::RUN_STATE_COMPLETE) {
    v1::DamagedResult& archive = damaged.emplace_back();
    archive.mutable_key()->set_run(run.id());
    archive.set_damage("damaged");
  }
  return damaged;
}

RunDetails FetchRunDetails(const std::string& context_option, const std::string& run) {
  RunDetails details;
  const auto client = Connect(context_option);
  if (!client.ok()) return details;
  const auto stored = (*client)->GetRun(run, kLimit);
  if (!stored.ok()) return details;
  details.pinned = stored->pinned();
  if (auto damaged = FindDamage(**client, *stored); damaged.ok()) {
    details.damaged = *std::move(damaged);
  }
  return details;
}

}  // namespace muster::cli
