#include "cli/rpc/attached.h"

#include "cli/rpc/job_client.h"

namespace muster::cli {

std::optional<AttachedMap> FetchAttached(const OperatorContext& context) {
  if (context.relay_targets.empty()) return std::nullopt;
  AttachedMap attached;
  JobClient client(context);
  v1::ListAttachedRequest request;
  do {
    const auto page = client.ListAttached(request);
    if (!page.ok()) return std::nullopt;
    for (const auto& child : page->children()) attached[child.name()] = child;
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return attached;
}

}  // namespace muster::cli
