#include "cli/rpc/run_reference.h"

#include "cli/exit_code.h"
#include "cli/rpc/id_prefix.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/cli.h"

namespace muster::cli {
namespace {

constexpr int kPage = 1000;

absl::StatusOr<std::string> FindNewest(Client& client) {
  v1::ListRunsRequest request;
  request.set_page_size(1);
  ASSIGN_OR_RETURN(const auto runs, client.ListRuns(request));
  if (runs.runs().empty()) return FromService(errors::NoRuns(), "the list of runs");
  return runs.runs(0).id();
}

}  // namespace

absl::Status RunNotFoundToNoRuns(const absl::Status& status) {
  return absl::IsNotFound(status) ? FromService(errors::NoRuns(), SubjectOf(status)) : status;
}

absl::StatusOr<std::string> ResolveRun(Client& client, const std::string& text) {
  return ResolveId(kRunIds, text, FromService(errors::NoRunBeginsWith(text), "the list of runs"),
                   [&client](const std::string& token) -> absl::StatusOr<IdPage> {
                     v1::ListRunsRequest request;
                     request.set_page_size(kPage);
                     request.set_page_token(token);
                     ASSIGN_OR_RETURN(const auto runs, client.ListRuns(request));
                     IdPage page = {.ids = {}, .next = runs.next_page_token()};
                     for (const v1::Run& run : runs.runs()) page.ids.push_back(run.id());
                     return page;
                   });
}

absl::StatusOr<std::string> ResolveRunOrNewest(Client& client, const std::string& text) {
  return text.empty() ? FindNewest(client) : ResolveRun(client, text);
}

}  // namespace muster::cli
