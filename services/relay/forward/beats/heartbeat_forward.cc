#include "services/relay/forward/beats/heartbeat_forward.h"

#include <grpcpp/alarm.h>

#include <optional>
#include <string>
#include <utility>

#include "services/common/base/mutex.h"
#include "services/common/errors.h"
#include "services/common/rpc/proto_time.h"
#include "services/status/heartbeats/beat_check.h"

namespace muster {
namespace {

constexpr std::string_view kBeat = "/muster.v1.HeartbeatService/Beat";
constexpr char kBeatAll[] = "/muster.v1.HeartbeatService/BeatAll";
constexpr absl::Duration kFirstWithin = absl::Seconds(10);
constexpr size_t kMaxBeatAll = size_t{8} << 20;

// One sender's stream. Small, as thousands of these are idle most of the time. Deletes itself when
// gRPC is done with it and the hub does not probe it.
class BeatBelow : public grpc::ServerBidiReactor<v1::BeatRequest, v1::BeatResponse>,
                  public BeatChild,
                  public std::enable_shared_from_this<BeatBelow> {
 public:
  static BeatBelow* Start(const ForwardParts& parts, BeatHub& hub, const Clock& clock,
                          grpc::CallbackServerContext* context) {
    std::shared_ptr<BeatBelow> below(new BeatBelow(parts, hub, clock, context));
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
      request_ = v1::BeatRequest();
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
    if (id_ != 0) hub_.Gone(id_);
    self_.reset();
  }

  // BeatChild.
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
  BeatBelow(const ForwardParts& parts, BeatHub& hub, const Clock& clock,
            grpc::CallbackServerContext* context)
      : way_(parts.way), hub_(hub), clock_(clock), call_(parts.runtime, context, kBeat) {}

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
      if (const auto word = way_.StatementFor(call_.caller()); !word.ok()) return word.status();
      node_ = *node;
      instance_ = request_.instance_id();
    }
    if (auto status = CheckBeat(request_, node_, instance_); !status.ok()) return status;
    for (v1::Activity& activity : *request_.mutable_activities()) {
      CleanActivity(&activity);
      const auto key = PairOf(identity, node_, activity.key());
      if (!key.ok()) return key.status();
      *activity.mutable_key() = *key;
      const absl::Status allowed =
          call_.Authorize(Resource::Pair(key->run(), key->plugin(), key->node()));
      if (!allowed.ok()) return allowed;
    }
    if (id_ == 0) {
      auto added = hub_.Add(std::make_shared<Caller>(call_.caller()), request_, weak_from_this());
      if (!added.ok()) return added.status();
      id_ = *added;
    } else if (IsNews()) {
      hub_.Beat(id_, request_);
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

  WayUp& way_;
  BeatHub& hub_;
  const Clock& clock_;
  Call call_;
  std::shared_ptr<BeatBelow> self_;          // until OnDone
  std::unique_ptr<grpc::Alarm> first_late_;  // until the first beat

  // Of the reading thread.
  v1::BeatRequest request_;
  std::string node_;
  std::string instance_;
  int32_t id_ = 0;  // in the hub

  v1::BeatResponse response_;
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

grpc::ServerBidiReactor<v1::BeatRequest, v1::BeatResponse>* HeartbeatForward::Beat(
    grpc::CallbackServerContext* context) {
  return BeatBelow::Start(parts_, hub_, clock_, context);
}

grpc::ServerUnaryReactor* HeartbeatForward::BeatOnce(grpc::CallbackServerContext* context,
                                                     const v1::BeatOnceRequest* request,
                                                     v1::BeatOnceResponse* response) {
  const v1::ResultKey& key = request->key();
  return ForwardUnary(parts_, &WayUp::Status, context, "/muster.v1.HeartbeatService/BeatOnce",
                      Resource::Pair(key.run(), key.plugin(), key.node()), request, response);
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* HeartbeatForward::BeatAll(
    grpc::CallbackServerContext* context) {
  return UploadBelow::Start(
      parts_.runtime, context, kBeatAll, kMaxBeatAll,
      [this](Call& call, const grpc::ByteBuffer&, const std::shared_ptr<UploadBelow>& below)
          -> absl::StatusOr<std::shared_ptr<UploadSink>> {
        if (auto allowed = call.Authorize(Resource::Own()); !allowed.ok()) return allowed;
        auto up = BeginUpward(parts_.way, &WayUp::Status, parts_.calls, call, below->context(), 0);
        if (!up.ok()) return up.status();
        return UploadUpward::Start(below, *std::move(up), kBeatAll, ahead_);
      });
}

}  // namespace muster
