#include "services/relay/proxy/run_forward.h"

#include <memory>
#include <utility>

#include "services/common/rpc/answer_memory.h"
#include "services/common/rpc/client_stream.h"
#include "services/common/rpc/server_stream.h"

namespace muster {
namespace {

constexpr char kWatchRun[] = "/muster.v1.RunService/WatchRun";

using UpstreamRuns = ClientStream<v1::WatchRunRequest, v1::Run>;
using DownstreamRuns = ServerStream<v1::Run>;

// Counts the version that the peer has not taken yet. The two sides of a watch use it in turn.
using Unread = std::shared_ptr<AnswerMemory::Ticket>;

// The upstream side of a watch: sends each version of the run downstream.
class UpstreamWatch final : public UpstreamRuns::Handler {
 public:
  UpstreamWatch(std::shared_ptr<DownstreamRuns> downstream, Unread unread, Admission::Ticket ticket,
                v1::WatchRunRequest request)
      : ticket_(std::move(ticket)),
        downstream_(std::move(downstream)),
        unread_(std::move(unread)),
        request_(std::move(request)) {}

  void OnStart(const std::shared_ptr<UpstreamRuns>& stream) override {
    stream->ReadNext();
    stream->SendLast(request_);
  }
  void OnMessage(v1::Run run) override {
    auto counted = downstream_->call().CountAnswer(static_cast<int64_t>(run.ByteSizeLong()));
    if (!counted.ok()) return downstream_->Cancel(counted.status());
    *unread_ = *std::move(counted);
    downstream_->Send(std::move(run));
  }
  void OnEnd(const absl::Status& status, EndedBy) override {
    downstream_->End(FromUpstream(status));
  }

 private:
  const Admission::Ticket ticket_;  // destroyed last: the owner of the others waits for it
  const std::shared_ptr<DownstreamRuns> downstream_;
  const Unread unread_;
  const v1::WatchRunRequest request_;
};

// The downstream side: the next version is read when the previous one has been sent.
class WatchHandler final : public ServerStreamHandler<void, v1::Run> {
 public:
  WatchHandler(const ForwardParts& parts, v1::WatchRunRequest request)
      : parts_(parts), request_(std::move(request)) {}

  void OnStart(const std::shared_ptr<DownstreamRuns>& stream) override {
    const absl::Status allowed = stream->call().Authorize(Resource::Run(request_.run()));
    if (!allowed.ok()) return stream->End(allowed);
    auto call = BeginUpstreamCall(parts_.upstream, &Upstream::Results, parts_.calls, stream->call(),
                                  stream->context(), 0);
    if (!call.ok()) return stream->End(call.status());
    StreamOptions options;
    options.first_within = absl::ZeroDuration();
    upstream_ =
        UpstreamRuns::Start(call->channel, kWatchRun, options,
                            std::make_shared<UpstreamWatch>(
                                stream, unread_, std::move(call->ticket), std::move(request_)),
                            {}, std::move(call->context));
  }
  void OnWritable() override {
    *unread_ = AnswerMemory::Ticket();
    upstream_->ReadNext();
  }
  void OnEnd(const absl::Status&, EndedBy) override {
    if (upstream_ == nullptr) return;
    upstream_->Cancel(absl::CancelledError("the downstream call has ended"));
  }

 private:
  const ForwardParts& parts_;
  v1::WatchRunRequest request_;
  const Unread unread_ = std::make_shared<AnswerMemory::Ticket>();
  std::shared_ptr<UpstreamRuns> upstream_;  // null if the call was rejected
};

}  // namespace

grpc::ServerUnaryReactor* RunForward::GetRun(grpc::CallbackServerContext* context,
                                             const v1::GetRunRequest* request, v1::Run* response) {
  return ForwardUnary(parts_, &Upstream::Results, context, "/muster.v1.RunService/GetRun",
                      Resource::Run(request->run()), request, response);
}

grpc::ServerWriteReactor<v1::Run>* RunForward::WatchRun(grpc::CallbackServerContext* context,
                                                        const v1::WatchRunRequest* request) {
  ServerStreamOptions options;
  options.notify_when_sent = true;
  return StartServerStream<void, v1::Run>(parts_.runtime, context, kWatchRun, options,
                                          std::make_shared<WatchHandler>(parts_, *request));
}

grpc::ServerUnaryReactor* RunForward::CreateRun(grpc::CallbackServerContext* context,
                                                const v1::CreateRunRequest*, v1::Run*) {
  return RejectUnary(parts_.runtime, context, "/muster.v1.RunService/CreateRun");
}

grpc::ServerUnaryReactor* RunForward::ListRuns(grpc::CallbackServerContext* context,
                                               const v1::ListRunsRequest*, v1::ListRunsResponse*) {
  return RejectUnary(parts_.runtime, context, "/muster.v1.RunService/ListRuns");
}

grpc::ServerUnaryReactor* RunForward::CancelRun(grpc::CallbackServerContext* context,
                                                const v1::CancelRunRequest*, v1::Run*) {
  return RejectUnary(parts_.runtime, context, "/muster.v1.RunService/CancelRun");
}

grpc::ServerUnaryReactor* RunForward::DeleteRun(grpc::CallbackServerContext* context,
                                                const v1::DeleteRunRequest*,
                                                v1::DeleteRunResponse*) {
  return RejectUnary(parts_.runtime, context, "/muster.v1.RunService/DeleteRun");
}

grpc::ServerUnaryReactor* RunForward::PinRun(grpc::CallbackServerContext* context,
                                             const v1::PinRunRequest*, v1::Run*) {
  return RejectUnary(parts_.runtime, context, "/muster.v1.RunService/PinRun");
}

grpc::ServerUnaryReactor* RunForward::UnpinRun(grpc::CallbackServerContext* context,
                                               const v1::UnpinRunRequest*, v1::Run*) {
  return RejectUnary(parts_.runtime, context, "/muster.v1.RunService/UnpinRun");
}

grpc::ServerUnaryReactor* RunForward::PreviewRetention(grpc::CallbackServerContext* context,
                                                       const v1::PreviewRetentionRequest*,
                                                       v1::PreviewRetentionResponse*) {
  return RejectUnary(parts_.runtime, context, "/muster.v1.RunService/PreviewRetention");
}

grpc::ServerUnaryReactor* RunForward::IssueCredential(grpc::CallbackServerContext* context,
                                                      const v1::IssueCredentialRequest*,
                                                      v1::Credential*) {
  return RejectUnary(parts_.runtime, context, "/muster.v1.RunService/IssueCredential");
}

grpc::ServerUnaryReactor* RunForward::IssueViewerCredential(grpc::CallbackServerContext* context,
                                                            const v1::IssueViewerCredentialRequest*,
                                                            v1::ViewerCredential*) {
  return RejectUnary(parts_.runtime, context, "/muster.v1.RunService/IssueViewerCredential");
}

grpc::ServerUnaryReactor* RunForward::SetStatusListener(grpc::CallbackServerContext* context,
                                                        const v1::SetStatusListenerRequest*,
                                                        v1::Run*) {
  return RejectUnary(parts_.runtime, context, "/muster.v1.RunService/SetStatusListener");
}

}  // namespace muster
