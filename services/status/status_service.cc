#include "services/status/status_service.h"

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <utility>
#include <variant>

#include "services/common/base/names.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/heartbeats.h"
#include "services/common/errors/runs.h"
#include "services/common/identity/caller_uri.h"
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

template <typename Message>
bool Parse(const grpc::ByteBuffer& from, Message* message) {
  grpc::ByteBuffer bytes(from);
  return grpc::SerializationTraits<Message>::Deserialize(&bytes, message).ok();
}

// Takes the bytes over without a copy.
grpc::ByteBuffer ToByteBuffer(std::string bytes) {
  auto* const owned = new std::string(std::move(bytes));
  const grpc::Slice slice(
      owned->data(), owned->size(), [](void* gone) { delete static_cast<std::string*>(gone); },
      owned);
  return {&slice, 1};
}

class WatchBytes : public StreamSource<grpc::ByteBuffer> {
 public:
  explicit WatchBytes(std::unique_ptr<WatchSource> source) : source_(std::move(source)) {}

  absl::StatusOr<Pull> Next(grpc::ByteBuffer* message) override {
    std::string bytes;
    const auto pull = source_->Next(&bytes);
    if (pull.ok() && *pull == Pull::kMessage) *message = ToByteBuffer(std::move(bytes));
    return pull;
  }

 private:
  const std::unique_ptr<WatchSource> source_;
};

}  // namespace

grpc::ServerUnaryReactor* StatusService::GetStatus(grpc::CallbackServerContext* context,
                                                   const grpc::ByteBuffer* request,
                                                   grpc::ByteBuffer* response) {
  return AnswerLater(runtime_, context, "/muster.v1.StatusService/GetStatus", {*request, response},
                     [this, request, response](const std::shared_ptr<Call>& call, Finish finish) {
                       const auto query = MakeQuery(*call, *request);
                       if (!query.ok()) return finish(query.status());
                       Get(*query, HolderOf(call->caller()), response, std::move(finish));
                     });
}

absl::StatusOr<StatusQuery> StatusService::MakeQuery(Call& call,
                                                     const grpc::ByteBuffer& request) const {
  v1::GetStatusRequest wanted;
  if (!Parse(request, &wanted)) return errors::InvalidStatusRequest();
  // A name that was left out is a run like any other: what it stands for is what has to be allowed.
  ASSIGN_OR_RETURN(auto run, board_.Resolve(wanted.run()));
  StatusQuery query = QueryOf(wanted, std::move(run));
  RETURN_IF_ERROR(Allow(call, &query));
  if (query.page_size < 0 || query.page_size > kMaxPage) return errors::InvalidPageSize(kMaxPage);
  return query;
}

void StatusService::Get(const StatusQuery& query, const std::string& caller,
                        grpc::ByteBuffer* response, Finish finish) {
  board_.FindWithPairs(query.run, caller,
                       [this, query, response, finish = std::move(finish)](
                           const absl::StatusOr<std::shared_ptr<RunBoard>>& run) mutable {
                         std::string bytes;
                         absl::Status got = run.status();
                         if (run.ok()) got = board_.Get(**run, query, &bytes);
                         *response = ToByteBuffer(std::move(bytes));
                         finish(std::move(got));
                       });
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* StatusService::WatchStatus(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  return StartSourceStream<grpc::ByteBuffer>(
      watching_, context, "/muster.v1.StatusService/WatchStatus", StreamLimits{.of_caller = 1000},
      [this, request](Call& call, std::function<void()> wake)
          -> absl::StatusOr<std::unique_ptr<StreamSource<grpc::ByteBuffer>>> {
        v1::WatchStatusRequest wanted;
        if (!Parse(*request, &wanted)) return errors::InvalidStatusRequest();
        ASSIGN_OR_RETURN(auto run, board_.Resolve(wanted.run()));
        RETURN_IF_ERROR(call.Authorize(Resource::Run(run)));
        wanted.set_run(std::move(run));
        ASSIGN_OR_RETURN(auto source, WatchSource::Make(board_, hub_, clock_, wanted,
                                                        HolderOf(call.caller()), std::move(wake)));
        return std::make_unique<WatchBytes>(std::move(source));
      });
}

grpc::ServerUnaryReactor* StatusService::ReportProgress(grpc::CallbackServerContext* context,
                                                        const grpc::ByteBuffer* request,
                                                        grpc::ByteBuffer* response) {
  return Answer(
      runtime_, context, "/muster.v1.StatusService/ReportProgress", {*request, response},
      [this, request, response](Call& call) -> absl::Status {
        v1::ReportProgressRequest report;
        if (!Parse(*request, &report)) {
          return errors::InvalidProgress("it cannot be parsed");
        }
        const v1::ResultKey& key = report.key();
        RETURN_IF_ERROR(call.Authorize(Resource::Pair(key.run(), key.plugin(), key.node())));
        const grpc::Slice empty;  // ReportProgressResponse has no fields
        *response = grpc::ByteBuffer(&empty, 1);
        return board_.Report(report);
      });
}

grpc::ServerUnaryReactor* StatusService::ListNodes(grpc::CallbackServerContext* context,
                                                   const v1::ListNodesRequest* request,
                                                   v1::ListNodesResponse* response) {
  return Answer(runtime_, context, "/muster.v1.StatusService/ListNodes", {*request, response},
                [this, request, response](Call& call) -> absl::Status {
                  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
                  auto nodes = board_.ListNodes(*request);
                  if (nodes.ok()) *response = *std::move(nodes);
                  return nodes.status();
                });
}

grpc::ServerUnaryReactor* StatusService::GetNode(grpc::CallbackServerContext* context,
                                                 const v1::GetNodeRequest* request,
                                                 v1::Node* response) {
  return Answer(runtime_, context, "/muster.v1.StatusService/GetNode", {*request, response},
                [this, request, response](Call& call) -> absl::Status {
                  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
                  RETURN_IF_ERROR(ValidateName("node", request->node()));
                  ASSIGN_OR_RETURN(auto node, board_.GetNode(request->node()));
                  ASSIGN_OR_RETURN(auto events, history_(request->node()));
                  *response = std::move(node);
                  response->mutable_events()->Assign(events.begin(), events.end());
                  return absl::OkStatus();
                });
}

}  // namespace muster
