#include "services/status/status_service.h"

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <utility>
#include <variant>

#include "services/common/base/names.h"
#include "services/common/errors.h"
#include "services/common/rpc/stream.h"
#include "services/status/board/watch_source.h"

namespace muster {
namespace {

constexpr int kMaxPage = 10'000;

// An operator and a viewer of the run may see all of it, a deliverer its own pair. Narrows the
// query to what the caller may see.
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
  return call.Authorize(Resource::Run(query->run));
}

StatusQuery QueryOf(const v1::GetStatusRequest& request, std::string run) {
  StatusQuery query;
  query.run = std::move(run);
  query.plugin = request.plugin();
  query.outcome = request.outcome();
  for (const int reason : request.reasons()) query.reasons.push_back(v1::Reason{reason});
  query.page_size = request.page_size();
  query.page_token = request.page_token();
  return query;
}

}  // namespace

grpc::ServerUnaryReactor* StatusService::GetStatus(grpc::CallbackServerContext* context,
                                                   const v1::GetStatusRequest* request,
                                                   v1::RunStatus* response) {
  return Answer(runtime_, context, "/muster.v1.StatusService/GetStatus",
                [this, request, response](Call& call) -> absl::Status {
                  // A name that was left out is a run like any other: what it stands for is what
                  // has to be allowed.
                  auto run = board_.Resolve(request->run());
                  if (!run.ok()) return run.status();
                  StatusQuery query = QueryOf(*request, *std::move(run));
                  if (const absl::Status allowed = Allow(call, &query); !allowed.ok()) {
                    return allowed;
                  }
                  if (query.page_size < 0 || query.page_size > kMaxPage) {
                    return errors::InvalidPageSize(kMaxPage);
                  }
                  return board_.Get(query, response);
                });
}

grpc::ServerWriteReactor<v1::WatchStatusResponse>* StatusService::WatchStatus(
    grpc::CallbackServerContext* context, const v1::WatchStatusRequest* request) {
  return StreamReactor<v1::WatchStatusResponse>::Start(
      watching_, context, "/muster.v1.StatusService/WatchStatus",
      [this, request](Call& call, std::function<void()> wake)
          -> absl::StatusOr<std::unique_ptr<StreamSource<v1::WatchStatusResponse>>> {
        auto run = board_.Resolve(request->run());
        if (!run.ok()) return run.status();
        if (const absl::Status allowed = call.Authorize(Resource::Run(*run)); !allowed.ok()) {
          return allowed;
        }
        v1::WatchStatusRequest resolved = *request;
        resolved.set_run(*std::move(run));
        return WatchSource::Make(board_, hub_, clock_, resolved, std::move(wake));
      });
}

grpc::ServerUnaryReactor* StatusService::ReportProgress(grpc::CallbackServerContext* context,
                                                        const grpc::ByteBuffer* request,
                                                        grpc::ByteBuffer* response) {
  return Answer(
      runtime_, context, "/muster.v1.StatusService/ReportProgress",
      [this, request, response](Call& call) -> absl::Status {
        grpc::ByteBuffer bytes(*request);
        v1::ReportProgressRequest report;
        if (!grpc::SerializationTraits<v1::ReportProgressRequest>::Deserialize(&bytes, &report)
                 .ok()) {
          return errors::InvalidProgress("it cannot be read, or its text is not UTF-8");
        }
        const v1::ResultKey& key = report.key();
        const absl::Status allowed =
            call.Authorize(Resource::Pair(key.run(), key.plugin(), key.node()));
        if (!allowed.ok()) return allowed;
        const grpc::Slice empty;  // ReportProgressResponse has no fields
        *response = grpc::ByteBuffer(&empty, 1);
        return board_.Report(report);
      });
}

grpc::ServerUnaryReactor* StatusService::ListNodes(grpc::CallbackServerContext* context,
                                                   const v1::ListNodesRequest* request,
                                                   v1::ListNodesResponse* response) {
  return Answer(runtime_, context, "/muster.v1.StatusService/ListNodes",
                [this, request, response](Call& call) -> absl::Status {
                  const absl::Status allowed = call.Authorize(Resource::Fleet());
                  if (!allowed.ok()) return allowed;
                  auto nodes = board_.ListNodes(*request);
                  if (nodes.ok()) *response = *std::move(nodes);
                  return nodes.status();
                });
}

grpc::ServerUnaryReactor* StatusService::GetNode(grpc::CallbackServerContext* context,
                                                 const v1::GetNodeRequest* request,
                                                 v1::Node* response) {
  return Answer(runtime_, context, "/muster.v1.StatusService/GetNode",
                [this, request, response](Call& call) -> absl::Status {
                  const absl::Status allowed = call.Authorize(Resource::Fleet());
                  if (!allowed.ok()) return allowed;
                  if (const absl::Status valid = ValidateName("node", request->node());
                      !valid.ok()) {
                    return valid;
                  }
                  auto node = board_.GetNode(request->node());
                  if (!node.ok()) return node.status();
                  auto events = history_(request->node());
                  if (!events.ok()) return events.status();
                  *response = *std::move(node);
                  response->mutable_events()->Assign(events->begin(), events->end());
                  return absl::OkStatus();
                });
}

}  // namespace muster
