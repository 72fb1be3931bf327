#include "services/relay/topology/attach_handler.h"

#include <limits>

#include "services/common/errors/relay.h"
#include "services/common/rpc/caller.h"

namespace muster {
namespace {

// The most that waits for a child. Commands for all descendants of a relay may arrive together.
constexpr size_t kMaxQueuedToNode = 4 << 20;
constexpr size_t kMaxQueuedToRelay = 64 << 20;

// A new stream takes over from an older one: more are open only for a moment.
constexpr int64_t kMaxStreamsOfChild = 8;

class GrpcChildStream final : public ChildStream {
 public:
  explicit GrpcChildStream(std::shared_ptr<ServerStream<v1::AttachResponse>> stream)
      : stream_(std::move(stream)) {}

  void ReadNext() override { stream_->ReadNext(); }
  Sent Send(v1::AttachResponse message) override { return stream_->Send(std::move(message)); }
  void End(const absl::Status& why) override { stream_->End(why); }
  void Cancel(const absl::Status& why) override { stream_->Cancel(why); }

 private:
  const std::shared_ptr<ServerStream<v1::AttachResponse>> stream_;
};

}  // namespace

grpc::ServerBidiReactor<v1::AttachRequest, v1::AttachResponse>* AttachHandler::Start(
    const RpcRuntime& runtime, grpc::CallbackServerContext* context, const AttachParts& parts,
    StreamStopper& stopper) {
  const auto caller =
      runtime.callers->Resolve(*context->auth_context(), context->client_metadata());
  const bool is_relay = caller.ok() && IsRelay((*caller)->identity);
  ServerStreamOptions options;
  options.first_late = [](absl::Duration) { return errors::NoHello(); };
  options.max_queued = std::numeric_limits<size_t>::max();
  options.max_queued_bytes = is_relay ? kMaxQueuedToRelay : kMaxQueuedToNode;
  options.notify_when_sent = true;
  options.limits.of_caller = kMaxStreamsOfChild;
  return StartServerStream<v1::AttachRequest, v1::AttachResponse>(
      runtime, context, "/muster.v1.AttachService/Attach", options,
      std::make_shared<AttachHandler>(parts, *runtime.executor, stopper));
}

void AttachHandler::OnStart(const std::shared_ptr<ServerStream<v1::AttachResponse>>& stream) {
  stream_ = stream;
  const absl::Status allowed = stream->call().Authorize(Resource::Own());
  if (!allowed.ok()) return stream->End(allowed);
  auto ticket = stopper_.Add([stream](const absl::Status& why) { stream->End(why); });
  if (!ticket.ok()) return stream->End(ticket.status());
  ticket_ = *std::move(ticket);
  session_ = std::make_shared<ChildSession>(parts_, executor_, stream->call().caller().identity,
                                            std::make_shared<GrpcChildStream>(stream));
  session_->Begin();
}

void AttachHandler::OnEnd(const absl::Status&, EndedBy) {
  ticket_.reset();
  if (session_ != nullptr) session_->HandleEnd();
}

}  // namespace muster
