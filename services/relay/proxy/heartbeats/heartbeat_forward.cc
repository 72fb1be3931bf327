#include "services/relay/proxy/heartbeats/heartbeat_forward.h"

#include <grpcpp/alarm.h>

#include <optional>
#include <string>
#include <utility>

#include "services/common/base/mutex.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/heartbeats.h"
#include "services/common/heartbeat/beat_check.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

constexpr std::string_view kBeat = "/muster.v1.HeartbeatService/StreamHeartbeats";
constexpr char kBeatAll[] = "/muster.v1.HeartbeatService/RelayHeartbeats";
constexpr absl::Duration kFirstWithin = absl::Seconds(10);
constexpr size_t kMaxBeatAll = size_t{8} << 20;

// One sender's stream. Small, as thousands of these are idle most of the time. Deletes itself when
// gRPC is done with it and the hub does not probe it.
class HeartbeatHandler
    : public grpc::ServerBidiReactor<v1::StreamHeartbeatsRequest, v1::StreamHeartbeatsResponse>,
      public HeartbeatSender,
      public std::enable_shared_from_this<HeartbeatHandler> {
 public:
  static HeartbeatHandler* Start(const ForwardParts& parts, HeartbeatHub& hub, const Clock& clock,
                                 grpc::CallbackServerContext* context) {
    std::shared_ptr<HeartbeatHandler> below(new HeartbeatHandler(parts, hub, clock, context));
    below->self_ = below;
    if (!below->call_.caller_status().ok()) {
      below->End(below->call_.caller_status());
    } else {
      below->AwaitFirst();
      below->StartRead(&below->request_);
    }
    return below.get();
  }

  void OnReadDone(bool ok) override {
    if (first_late_ != nullptr) {
      {
        MutexLock lock(mutex_);
        begun_ = true;
      }
      first_late_.reset();
    }
    if (!ok) {
      return End(errors::InvalidHeartbeat(
          "the stream ended without a goodbye, or with a message that cannot be read"));
    }
    const absl::Status status = Take();
    if (!status.ok()) return End(status);
    if (request_.goodbye()) return End(absl::OkStatus());
    if (!request_.instance_id().empty() || request_.activities_size() > 0) {
      request_ = v1::StreamHeartbeatsRequest();
    }
    MutexLock lock(mutex_);
    if (!ended_ && !end_) StartRead(&request_);
  }

  void OnWriteDone(bool ok) override {
    call_.EndWrite();
    MutexLock lock(mutex_);
    writing_ = false;
    if (ended_) return;
    if (!ok && !end_) end_ = absl::CancelledError("the sender went away");
    if (end_) {
      const grpc::Status final = MarkEnded();
      lock.Unlock();
      return Finish(final);
    }
    Send();
  }

  void OnCancel() override { End(absl::CancelledError("the call was cancelled")); }

  void OnDone() override {
    if (id_ != 0) hub_.Remove(id_);
    self_.reset();
  }

  // HeartbeatSender.
  void Probe() override {
    MutexLock lock(mutex_);
    probing_ = true;
    Send();
  }
  void End(const absl::Status& why) override {
    MutexLock lock(mutex_);
    if (ended_ || end_) return;
    end_ = why;
    if (writing_) return;
    const grpc::Status final = MarkEnded();
    lock.Unlock();
    Finish(final);
  }

 private:
  HeartbeatHandler(const ForwardParts& parts, HeartbeatHub& hub, const Clock& clock,
                   grpc::CallbackServerContext* context)
      : upstream_(parts.upstream), hub_(hub), clock_(clock), call_(parts.runtime, context, kBeat) {}

  // Who never beats is nobody whom silence could betray.
  void AwaitFirst() {
    first_late_ = std::make_unique<grpc::Alarm>();
    first_late_->Set(absl::ToChronoTime(absl::Now() + kFirstWithin),
                     [weak = weak_from_this()](bool expired) {
                       const auto self = expired ? weak.lock() : nullptr;
                       if (self == nullptr) return;
                       {
                         MutexLock lock(self->mutex_);
                         if (self->begun_) return;
                       }
                       self->End(errors::NoFirstHeartbeat(kFirstWithin));
                     });
  }

  absl::Status Take() {
    const Identity& identity = call_.caller().identity;
    if (id_ == 0) {
      const auto node = NodeOf(identity, request_);
      const absl::Status allowed =
          call_.Authorize(Resource::Pair("", "", node.ok() ? *node : std::string()));
      if (!node.ok()) return node.status();
      if (!allowed.ok()) return allowed;
      RETURN_IF_ERROR(upstream_.StatementFor(call_.caller()));
      node_ = *node;
      instance_ = request_.instance_id();
    }
    RETURN_IF_ERROR(CheckBeat(request_, node_, instance_));
    for (v1::Activity& activity : *request_.mutable_activities()) {
      CleanActivity(&activity);
      ASSIGN_OR_RETURN(const auto key, PairOf(identity, node_, activity.key()));
      *activity.mutable_key() = key;
      RETURN_IF_ERROR(call_.Authorize(Resource::Pair(key.run(), key.plugin(), key.node())));
    }
    if (id_ == 0) {
      ASSIGN_OR_RETURN(
          id_, hub_.Add(std::make_shared<Caller>(call_.caller()), request_, weak_from_this()));
    } else if (IsNews()) {
      hub_.HandleHeartbeat(id_, request_);
    }
    MutexLock lock(mutex_);
    sequence_ = std::max(sequence_, request_.sequence());
    answering_ = true;
    Send();
    return absl::OkStatus();
  }

  bool IsNews() {
    MutexLock lock(mutex_);
    return request_.sequence() > sequence_;
  }

  void Send() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || ended_ || end_ || (!answering_ && !probing_)) return;
    response_.set_sequence(sequence_);
    ToProto(hub_.interval(), response_.mutable_interval());
    ToProto(clock_.Now(), response_.mutable_time());
    response_.set_probe(probing_ && !answering_);
    answering_ = probing_ = false;
    writing_ = true;
    call_.BeginWrite();
    StartWrite(&response_);
  }

  // Returns what Finish has to be called with once the mutex is released.
  grpc::Status MarkEnded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ended_ = true;
    return call_.Final(*end_);
  }

  Upstream& upstream_;
  HeartbeatHub& hub_;
  const Clock& clock_;
  Call call_;
  std::shared_ptr<HeartbeatHandler> self_;   // until OnDone
  std::unique_ptr<grpc::Alarm> first_late_;  // until the first beat

  // Of the reading thread.
  v1::StreamHeartbeatsRequest request_;
  std::string node_;
  std::string instance_;
  int32_t id_ = 0;  // in the hub

  v1::StreamHeartbeatsResponse response_;
  Mutex mutex_;
  int64_t sequence_ ABSL_GUARDED_BY(mutex_) = -1;
  bool answering_ ABSL_GUARDED_BY(mutex_) = false;
  bool probing_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool begun_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);  // to end with once no write is out
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

grpc::ServerBidiReactor<v1::StreamHeartbeatsRequest, v1::StreamHeartbeatsResponse>*
HeartbeatForward::StreamHeartbeats(grpc::CallbackServerContext* context) {
  return HeartbeatHandler::Start(parts_, hub_, clock_, context);
}

grpc::ServerUnaryReactor* HeartbeatForward::SendHeartbeat(grpc::CallbackServerContext* context,
                                                          const v1::SendHeartbeatRequest* request,
                                                          v1::SendHeartbeatResponse* response) {
  const v1::ResultKey& key = request->key();
  return ForwardUnary(parts_, &Upstream::Status, context,
                      "/muster.v1.HeartbeatService/SendHeartbeat",
                      Resource::Pair(key.run(), key.plugin(), key.node()), request, response);
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* HeartbeatForward::RelayHeartbeats(
    grpc::CallbackServerContext* context) {
  return DownstreamStream::Start(
      parts_.runtime, context, kBeatAll, kMaxBeatAll,
      [this](Call& call, const grpc::ByteBuffer&, const std::shared_ptr<DownstreamStream>& below)
          -> absl::StatusOr<std::shared_ptr<MessageSink>> {
        RETURN_IF_ERROR(call.Authorize(Resource::Own()));
        ASSIGN_OR_RETURN(auto up, BeginUpstreamCall(parts_.upstream, &Upstream::Status,
                                                    parts_.calls, call, below->context(), 0));
        return UpstreamStream::Start(below, std::move(up), kBeatAll, ahead_);
      });
}

}  // namespace muster
