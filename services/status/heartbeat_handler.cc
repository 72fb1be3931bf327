#include "services/status/heartbeat_handler.h"

#include <utility>

#include "services/common/errors/heartbeats.h"
#include "services/common/rpc/proto_time.h"

namespace muster {

grpc::ServerBidiReactor<v1::StreamHeartbeatsRequest, v1::StreamHeartbeatsResponse>*
HeartbeatHandler::Start(const RpcRuntime& runtime, grpc::CallbackServerContext* context,
                        const HeartbeatParts& parts) {
  ServerStreamOptions options;
  // A sender without any heartbeat would not be missed.
  options.first_within = parts.first_within;
  options.first_late = errors::NoFirstHeartbeat;
  return StartServerStream<v1::StreamHeartbeatsRequest, v1::StreamHeartbeatsResponse>(
      runtime, context, "/muster.v1.HeartbeatService/StreamHeartbeats", options,
      std::make_shared<HeartbeatHandler>(parts));
}

void HeartbeatHandler::OnStart(
    const std::shared_ptr<ServerStream<v1::StreamHeartbeatsResponse>>& stream) {
  stream_ = stream;
  stream->ReadNext();
}

void HeartbeatHandler::OnMessage(v1::StreamHeartbeatsRequest request) {
  Call& call = stream_->call();
  SenderConnection connection;
  // Only the first heartbeat needs it.
  if (!intake_.stream_ref()) {
    connection.link = weak_from_this();
    if (!call.caller().via) connection.peer = ParseTcpPeer(stream_->context()->peer());
  }
  const auto answer = intake_.Handle(
      request, call.caller().identity,
      [&call](const Resource& resource) { return call.Authorize(resource); }, connection);
  if (!answer.ok()) return stream_->End(answer.status());
  {
    MutexLock lock(mutex_);
    answer_ = *answer;
    answer_due_ = true;
    SendDue();
  }
  if (request.goodbye()) return stream_->End(absl::OkStatus());
  stream_->ReadNext();
}

void HeartbeatHandler::OnHalfClose() {
  half_closed_ = true;
  stream_->End(
      errors::InvalidHeartbeat("the stream ended without a goodbye, or with an invalid message"));
}

void HeartbeatHandler::OnWritable() {
  MutexLock lock(mutex_);
  SendDue();
}

void HeartbeatHandler::Probe() {
  MutexLock lock(mutex_);
  probe_due_ = true;
  SendDue();
}

// While a message is being sent the stream takes no other, and calls OnWritable.
void HeartbeatHandler::SendDue() {
  if (!answer_due_ && !probe_due_) return;
  v1::StreamHeartbeatsResponse response;
  response.set_sequence(answer_.sequence);
  ToProto(answer_.interval, response.mutable_interval());
  ToProto(parts_.clock.Now(), response.mutable_time());
  response.set_probe(!answer_due_);
  if (stream_->Send(std::move(response)) == Sent::kQueued) answer_due_ = probe_due_ = false;
}

void HeartbeatHandler::OnEnd(const absl::Status&, EndedBy by) {
  if (!intake_.stream_ref()) return;
  if (parts_.is_revoked(stream_->call().caller())) {
    parts_.registry.Revoked(*intake_.stream_ref());
  } else {
    parts_.registry.Closed(*intake_.stream_ref(), /*by_peer=*/half_closed_ || by == EndedBy::kPeer);
  }
}

}  // namespace muster
