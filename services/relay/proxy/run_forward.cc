#include "services/relay/proxy/run_forward.h"

#include <grpcpp/support/client_callback.h>

#include <memory>
#include <utility>

namespace muster {
namespace {

constexpr std::string_view kWatchRun = "/muster.v1.RunService/WatchRun";

// A run's changes, one at a time: the next is asked for when the one before has gone out. Deletes
// itself when both sides are done with it.
class WatchForward : public grpc::ServerWriteReactor<v1::Run>,
                     public std::enable_shared_from_this<WatchForward> {
 public:
  static WatchForward* Start(const ForwardParts& parts, grpc::CallbackServerContext* context,
                             const v1::WatchRunRequest& request) {
    std::shared_ptr<WatchForward> watch(new WatchForward(parts.runtime, context, request));
    watch->self_ = watch;
    watch->Begin(parts, context);
    return watch.get();
  }

  void OnWriteDone(bool) override {
    call_.EndWrite();
    // Also for one who is gone: the call above is cancelled then, and says so.
    above_.StartRead(&run_);
  }
  void OnDone() override { self_.reset(); }

 private:
  class Above : public grpc::ClientReadReactor<v1::Run> {
   public:
    explicit Above(WatchForward& watch) : watch_(watch) {}
    void OnReadDone(bool ok) override { watch_.Read(ok); }
    void OnDone(const grpc::Status& status) override { watch_.AboveDone(status); }

   private:
    WatchForward& watch_;
  };

  WatchForward(const RpcRuntime& runtime, grpc::CallbackServerContext* context,
               const v1::WatchRunRequest& request)
      : call_(runtime, context, kWatchRun), request_(request), above_(*this) {}

  void Begin(const ForwardParts& parts, grpc::CallbackServerContext* context) {
    if (!call_.caller_status().ok()) return End(call_.caller_status());
    if (auto allowed = call_.Authorize(Resource::Run(request_.run())); !allowed.ok()) {
      return End(allowed);
    }
    auto up = BeginUpstreamCall(parts.upstream, &Upstream::Results, parts.calls, call_, context, 0);
    if (!up.ok()) return End(up.status());
    up_ = *std::move(up);
    above_self_ = shared_from_this();
    v1::RunService::Stub(up_->channel).async()->WatchRun(up_->context.get(), &request_, &above_);
    // Later reads are begun from the other side's callbacks.
    above_.AddHold();
    above_.StartRead(&run_);
    above_.StartCall();
  }

  void Read(bool ok) {
    if (!ok) return above_.RemoveHold();
    call_.BeginWrite();
    StartWrite(&run_);
  }

  void AboveDone(const grpc::Status& status) {
    End(FromUpstream(status));
    above_self_.reset();
  }

  void End(const absl::Status& status) { Finish(call_.Final(status)); }

  Call call_;
  const v1::WatchRunRequest request_;
  std::shared_ptr<UpstreamCall> up_;
  Above above_;
  v1::Run run_;
  std::shared_ptr<WatchForward> self_;  // until gRPC is done with either side
  std::shared_ptr<WatchForward> above_self_;
};

}  // namespace

grpc::ServerUnaryReactor* RunForward::GetRun(grpc::CallbackServerContext* context,
                                             const v1::GetRunRequest* request, v1::Run* response) {
  return ForwardUnary(parts_, &Upstream::Results, context, "/muster.v1.RunService/GetRun",
                      Resource::Run(request->run()), request, response);
}

grpc::ServerWriteReactor<v1::Run>* RunForward::WatchRun(grpc::CallbackServerContext* context,
                                                        const v1::WatchRunRequest* request) {
  return WatchForward::Start(parts_, context, *request);
}

grpc::ServerUnaryReactor* RunForward::CreateRun(grpc::CallbackServerContext* context,
                                                const v1::CreateRunRequest*, v1::Run*) {
  return RefuseUnary(parts_.runtime, context, "/muster.v1.RunService/CreateRun");
}

grpc::ServerUnaryReactor* RunForward::ListRuns(grpc::CallbackServerContext* context,
                                               const v1::ListRunsRequest*, v1::ListRunsResponse*) {
  return RefuseUnary(parts_.runtime, context, "/muster.v1.RunService/ListRuns");
}

grpc::ServerUnaryReactor* RunForward::CancelRun(grpc::CallbackServerContext* context,
                                                const v1::CancelRunRequest*, v1::Run*) {
  return RefuseUnary(parts_.runtime, context, "/muster.v1.RunService/CancelRun");
}

grpc::ServerUnaryReactor* RunForward::DeleteRun(grpc::CallbackServerContext* context,
                                                const v1::DeleteRunRequest*,
                                                v1::DeleteRunResponse*) {
  return RefuseUnary(parts_.runtime, context, "/muster.v1.RunService/DeleteRun");
}

grpc::ServerUnaryReactor* RunForward::IssueCredential(grpc::CallbackServerContext* context,
                                                      const v1::IssueCredentialRequest*,
                                                      v1::Credential*) {
  return RefuseUnary(parts_.runtime, context, "/muster.v1.RunService/IssueCredential");
}

grpc::ServerUnaryReactor* RunForward::IssueViewerCredential(grpc::CallbackServerContext* context,
                                                            const v1::IssueViewerCredentialRequest*,
                                                            v1::ViewerCredential*) {
  return RefuseUnary(parts_.runtime, context, "/muster.v1.RunService/IssueViewerCredential");
}

grpc::ServerUnaryReactor* RunForward::SetStatusListener(grpc::CallbackServerContext* context,
                                                        const v1::SetStatusListenerRequest*,
                                                        v1::Run*) {
  return RefuseUnary(parts_.runtime, context, "/muster.v1.RunService/SetStatusListener");
}

}  // namespace muster
