#include "cli/rpc/attached.h"

#include <utility>

#include "cli/rpc/job_client.h"
#include "services/common/base/status_macros.h"

namespace muster::cli {

absl::StatusOr<AttachedMap> ListAllAttached(const OperatorContext& context,
                                            const std::string& name) {
  AttachedMap attached;
  JobClient client(context);
  v1::ListAttachedRequest request;
  request.set_name(name);
  do {
    ASSIGN_OR_RETURN(const auto page, client.ListAttached(request));
    for (const auto& child : page.children()) attached[child.name()] = child;
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return attached;
}

std::optional<AttachedMap> FetchAttached(const OperatorContext& context, const std::string& name) {
  if (context.relay_targets.empty()) return std::nullopt;
  auto attached = ListAllAttached(context, name);
  if (!attached.ok()) return std::nullopt;
  return *std::move(attached);
}

}  // namespace muster::cli
