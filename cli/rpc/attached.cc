#include "cli/rpc/attached.h"

#include <utility>

#include "cli/rpc/job_client.h"
#include "services/common/base/status_macros.h"

namespace muster::cli {

absl::StatusOr<AttachedMap> ListAllAttached(const OperatorContext& context) {
  AttachedMap attached;
  JobClient client(context);
  v1::ListAttachedRequest request;
  do {
    ASSIGN_OR_RETURN(const auto page, client.ListAttached(request));
    for (const auto& child : page.children()) attached[child.name()] = child;
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return attached;
}

std::optional<AttachedMap> FetchAttached(const OperatorContext& context) {
  if (context.relay_targets.empty()) return std::nullopt;
  auto attached = ListAllAttached(context);
  if (!attached.ok()) return std::nullopt;
  return *std::move(attached);
}

}  // namespace muster::cli
