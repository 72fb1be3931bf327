#include "services/relay/proxy/heartbeats/upstream_heartbeats.h"

#include <grpcpp/channel.h>

#include <atomic>
#include <optional>
#include <utility>

#include "services/common/base/backoff.h"
#include "services/common/base/log.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/client_stream.h"

namespace muster {
namespace {

// The rate that a single sender may use as well.
constexpr absl::Duration kPace = absl::Milliseconds(250);

constexpr absl::Duration kWaitForChannel = absl::Seconds(1);

using HeartbeatStream = ClientStream<v1::RelayHeartbeatsRequest, v1::RelayHeartbeatsResponse>;

// Passes responses to the hub. Thread-safe.
class ResponseReader final : public HeartbeatStream::Handler {
 public:
  explicit ResponseReader(HeartbeatHub& hub) : hub_(hub) {}

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
    MutexLock lock(mutex_);
    end_ = status;
    changed_.NotifyAll();
  }

  // Sends the next message of the hub, unless the previous one is still being sent.
  void SendNext() {
    if (!writable_) return;
    auto request = hub_.Next();
    if (!request) return;
    writable_ = false;
    stream_->Send(*std::move(request));
  }

  // Waits for the end of the stream, or until `stop`.
  std::optional<absl::Status> AwaitEnd(const std::stop_token& stop, absl::Duration limit) {
    MutexLock lock(mutex_);
    changed_.WaitFor(mutex_, stop, limit,
                     [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return end_.has_value(); });
    return end_;
  }

 private:
  HeartbeatHub& hub_;
  std::shared_ptr<HeartbeatStream> stream_;
  std::atomic<bool> writable_ = true;
  Mutex mutex_;
  StoppableCondVar changed_;
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

UpstreamHeartbeats::UpstreamHeartbeats(HeartbeatHub& hub, Upstream& upstream)
    : hub_(hub), upstream_(upstream), thread_([this](const std::stop_token& stop) { Run(stop); }) {}

UpstreamHeartbeats::~UpstreamHeartbeats() { thread_.request_stop(); }

void UpstreamHeartbeats::Run(const std::stop_token& stop) {
  Backoff backoff;
  while (!stop.stop_requested()) {
    const auto channel = upstream_.Status();
    if (channel == nullptr) {
      WaitFor(kWaitForChannel, stop);
      continue;
    }
    const absl::Time begun = absl::Now();
    const absl::Status end = KeepOpen(channel, stop);
    if (stop.stop_requested()) return;
    if (!end.ok()) {
      Log(LogLevel::kInfo, "the upstream stream of heartbeats has ended", {{"error", end}});
    }
    if (absl::Now() - begun > absl::Minutes(1)) backoff.Reset();
    WaitFor(backoff.Next(std::nullopt), stop);
  }
}

// Returns the status of the stream; OK if the channel changed.
absl::Status UpstreamHeartbeats::KeepOpen(const std::shared_ptr<grpc::Channel>& channel,
                                          const std::stop_token& stop) {
  hub_.Restart();
  StreamOptions options;
  options.first_within = absl::ZeroDuration();  // the service need not respond
  options.notify_when_sent = true;
  const auto reader = std::make_shared<ResponseReader>(hub_);
  const StreamOwner<v1::RelayHeartbeatsRequest, v1::RelayHeartbeatsResponse> stream(
      HeartbeatStream::Start(channel, "/muster.v1.HeartbeatService/RelayHeartbeats", options,
                             reader));
  while (upstream_.Status() == channel) {
    reader->SendNext();
    if (const auto end = reader->AwaitEnd(stop, kPace); end || stop.stop_requested()) {
      return end.value_or(absl::OkStatus());
    }
  }
  return absl::OkStatus();
}

}  // namespace muster
