#include "services/status/status_service.h"

#include <utility>
#include <variant>

#include "services/common/base/names.h"
#include "services/common/errors.h"

namespace muster {
namespace {

constexpr int kMaxPage = 10'000;

// An operator may see all of a run, a deliverer its own pair. Narrows the query to what the caller
// may see.
absl::Status Allow(Call& call, StatusQuery* query) {
  const Identity& identity = call.caller().identity;
  if (const auto* pair = std::get_if<RunNodeIdentity>(&identity.name)) {
    query->only_plugin = pair->plugin;
    query->only_node = pair->node;
    return call.Authorize(Resource::Pair(query->run, pair->plugin, pair->node));
  }
  if (const auto* plugin = std::get_if<RunPluginIdentity>(&identity.name)) {
    query->only_plugin = plugin->plugin;
    return call.Authorize(Resource::Pair(query->run, plugin->plugin, ""));
  }
  if (const auto* node = std::get_if<NodeIdentity>(&identity.name)) {
    query->only_node = node->name;
    return call.Authorize(Resource::Pair(query->run, query->plugin, node->name));
  }
  return call.Authorize(query->run.empty() ? Resource::Fleet() : Resource::Run(query->run));
}

}  // namespace

grpc::ServerUnaryReactor* StatusService::GetStatus(grpc::CallbackServerContext* context,
                                                   const v1::GetStatusRequest* request,
                                                   v1::RunStatus* response) {
  return Answer(runtime_, context, "/muster.v1.StatusService/GetStatus",
                [this, request, response](Call& call) -> absl::Status {
                  StatusQuery query;
                  query.run = request->run();
                  query.plugin = request->plugin();
                  query.outcome = request->outcome();
                  query.page_size = request->page_size();
                  query.page_token = request->page_token();
                  if (const absl::Status allowed = Allow(call, &query); !allowed.ok()) {
                    return allowed;
                  }
                  if (query.page_size < 0 || query.page_size > kMaxPage) {
                    return errors::InvalidPageSize(kMaxPage);
                  }
                  auto status = board_.Get(query);
                  if (status.ok()) *response = *std::move(status);
                  return status.status();
                });
}

grpc::ServerUnaryReactor* StatusService::ReportProgress(grpc::CallbackServerContext* context,
                                                        const v1::ReportProgressRequest* request,
                                                        v1::ReportProgressResponse*) {
  return Answer(runtime_, context, "/muster.v1.StatusService/ReportProgress",
                [this, request](Call& call) -> absl::Status {
                  const v1::ResultKey& key = request->key();
                  const absl::Status allowed =
                      call.Authorize(Resource::Pair(key.run(), key.plugin(), key.node()));
                  if (!allowed.ok()) return allowed;
                  return board_.Report(*request, clock_.Now());
                });
}

}  // namespace muster
