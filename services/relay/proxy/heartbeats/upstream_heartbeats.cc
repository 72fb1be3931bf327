#include "services/relay/proxy/heartbeats/upstream_heartbeats.h"

#include <grpcpp/channel.h>

#include <atomic>
#include <functional>
#include <optional>
#include <utility>

#include "services/common/base/log.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/client_stream.h"

namespace muster {
namespace {

// The rate that a single sender may use as well.
constexpr absl::Duration kPace = absl::Milliseconds(250);

constexpr absl::Duration kWaitForChannel = absl::Seconds(1);

// A stream that was open for longer resets the back-off.
constexpr absl::Duration kWorks = absl::Minutes(1);

using HeartbeatStream = ClientStream<v1::RelayHeartbeatsRequest, v1::RelayHeartbeatsResponse>;

StreamOptions Options() {
  StreamOptions options;
  options.first_within = absl::ZeroDuration();  // the service need not respond
  options.notify_when_sent = true;
  return options;
}

// Passes responses to the hub. Thread-safe.
class ResponseReader final : public HeartbeatStream::Handler {
 public:
  // `ended` is called once, on a thread of gRPC; it must not block.
  ResponseReader(HeartbeatHub& hub, std::function<void()> ended)
      : hub_(hub), ended_(std::move(ended)) {}

  void OnStart(const std::shared_ptr<HeartbeatStream>& stream) override {
    stream_ = stream;
    stream->ReadNext();
  }
  void OnMessage(v1::RelayHeartbeatsResponse response) override {
    hub_.HandleResponse(response);
    stream_->ReadNext();
  }
  void OnWritable() override { writable_ = true; }
  void OnEnd(const absl::Status& status, EndedBy) override {
    {
      MutexLock lock(mutex_);
      end_ = status;
    }
    ended_();
  }

  // Sends the next message of the hub, unless the previous one is still being sent.
  void SendNext() {
    if (!writable_) return;
    auto request = hub_.Next();
    if (!request) return;
    writable_ = false;
    stream_->Send(*std::move(request));
  }

  // Returns the status of the stream once it has ended.
  std::optional<absl::Status> end() const {
    MutexLock lock(mutex_);
    return end_;
  }

 private:
  HeartbeatHub& hub_;
  const std::function<void()> ended_;
  std::shared_ptr<HeartbeatStream> stream_;
  std::atomic<bool> writable_ = true;
  mutable Mutex mutex_;
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

// The destructor cancels the stream and waits for its last callback.
class UpstreamHeartbeats::OpenStream {
 public:
  OpenStream(HeartbeatHub& hub, const std::shared_ptr<grpc::Channel>& channel,
             std::function<void()> ended)
      : reader_(std::make_shared<ResponseReader>(hub, std::move(ended))),
        stream_(HeartbeatStream::Start(channel, "/muster.v1.HeartbeatService/RelayHeartbeats",
                                       Options(), reader_)) {}

  ResponseReader& reader() { return *reader_; }

 private:
  const std::shared_ptr<ResponseReader> reader_;
  const StreamOwner<v1::RelayHeartbeatsRequest, v1::RelayHeartbeatsResponse> stream_;
};

UpstreamHeartbeats::UpstreamHeartbeats(HeartbeatHub& hub, Upstream& upstream, const Clock& clock,
                                       TimerService& timers, Executor& executor)
    : hub_(hub), upstream_(upstream), clock_(clock), tick_(timers, executor, [this] { Tick(); }) {
  tick_.RunNow();
}

UpstreamHeartbeats::~UpstreamHeartbeats() {
  tick_.Stop();
  stream_.reset();
}

// The end of a stream requests a tick, so a tick may come early.
void UpstreamHeartbeats::Tick() {
  if (stream_ == nullptr) return tick_.RunAfter(OpenOrWait());
  const auto end = stream_->reader().end();
  if (!end && upstream_.Status() == channel_) {
    stream_->reader().SendNext();
    return tick_.RunAfter(kPace);
  }
  if (end && !end->ok()) {
    Log(LogLevel::kInfo, "the upstream stream of heartbeats has ended", {{"error", *end}});
  }
  if (clock_.MonotonicNow() - opened_ > kWorks) backoff_.Reset();
  stream_.reset();
  channel_.reset();
  const absl::Duration wait = backoff_.Next(std::nullopt);
  open_after_ = clock_.MonotonicNow() + wait;
  tick_.RunAfter(wait);
}

// Returns the time until the next tick.
absl::Duration UpstreamHeartbeats::OpenOrWait() {
  const absl::Duration wait = open_after_ - clock_.MonotonicNow();
  if (wait > absl::ZeroDuration()) return wait;
  channel_ = upstream_.Status();
  if (channel_ == nullptr) return kWaitForChannel;
  hub_.Restart();
  opened_ = clock_.MonotonicNow();
  stream_ = std::make_unique<OpenStream>(hub_, channel_, [this] { tick_.RunNow(); });
  stream_->reader().SendNext();
  return kPace;
}

}  // namespace muster
