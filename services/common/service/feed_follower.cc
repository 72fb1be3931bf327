#include "services/common/service/feed_follower.h"

#include <algorithm>
#include <utility>

#include "absl/random/random.h"
#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/client_stream.h"

namespace muster {
namespace {

constexpr absl::Duration kFirstBackOff = absl::Milliseconds(200);
constexpr absl::Duration kLongestBackOff = absl::Seconds(10);
// The aggregator says that it lives every 5 s.
constexpr absl::Duration kSilence = absl::Seconds(15);

using FeedStream = ClientStream<v1::FollowChangesRequest, v1::FollowChangesResponse>;

// Hands the messages of a stream to one thread that waits for them. A blocking call would make that
// thread one of those that poll for gRPC: it would wake for heartbeats, which it can only hand on.
class FeedReader final : public FeedStream::Handler {
 public:
  explicit FeedReader(v1::FollowChangesRequest request) : request_(std::move(request)) {}

  void OnStart(const std::shared_ptr<FeedStream>& stream) override {
    stream->ReadNext();
    stream->SendLast(request_);
  }

  void OnMessage(v1::FollowChangesResponse message) override {
    MutexLock lock(mutex_);
    message_ = std::move(message);
    changed_.NotifyAll();
  }

  void OnEnd(const absl::Status& status, EndedBy) override {
    MutexLock lock(mutex_);
    end_ = status;
    changed_.NotifyAll();
  }

  // Waits for the message that was asked for; nothing at the end.
  std::optional<v1::FollowChangesResponse> Await() {
    MutexLock lock(mutex_);
    while (!message_ && !end_) changed_.Wait(mutex_);
    return std::exchange(message_, std::nullopt);
  }

  // After the end.
  absl::Status status() const {
    MutexLock lock(mutex_);
    return *end_;
  }

 private:
  const v1::FollowChangesRequest request_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::optional<v1::FollowChangesResponse> message_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

FeedFollower::FeedFollower(std::shared_ptr<grpc::Channel> channel,
                           std::function<void(const v1::FollowChangesResponse&)> take)
    : channel_(std::move(channel)),
      take_(std::move(take)),
      begun_(SystemClock().MonotonicNow()),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

FeedFollower::~FeedFollower() = default;

bool FeedFollower::connected() const { return heard_at_ != 0 && silence() < kSilence; }

absl::Duration FeedFollower::silence() const {
  const int64_t heard = heard_at_;
  return SystemClock().MonotonicNow() - (heard == 0 ? begun_ : absl::Nanoseconds(heard));
}

void FeedFollower::Run(const std::stop_token& stop) {
  Mutex mutex;
  StoppableCondVar sleeper;
  absl::BitGen random;
  absl::Duration limit = kFirstBackOff;
  while (!stop.stop_requested()) {
    const int64_t heard_before = heard_at_;
    FollowOnce(stop);
    limit = heard_at_ != heard_before ? kFirstBackOff : std::min(limit * 2, kLongestBackOff);
    const absl::Duration wait =
        absl::Nanoseconds(absl::Uniform<int64_t>(random, 0, absl::ToInt64Nanoseconds(limit)));
    MutexLock lock(mutex);
    sleeper.WaitFor(mutex, stop, wait, [] { return false; });
  }
}

void FeedFollower::FollowOnce(const std::stop_token& stop) {
  v1::FollowChangesRequest request;
  if (cursor_) request.set_cursor(*cursor_);
  request.set_batch_pairs(true);
  const auto reader = std::make_shared<FeedReader>(std::move(request));
  const StreamOwner<v1::FollowChangesRequest, v1::FollowChangesResponse> stream(
      FeedStream::Start(channel_, "/muster.v1.ChangeService/FollowChanges", {}, reader));
  const std::stop_callback cancel(
      stop, [&stream] { stream->Cancel(absl::CancelledError("the service is stopping")); });
  while (const auto event = reader->Await()) {
    stream->ReadNext();
    heard_at_ = absl::ToInt64Nanoseconds(SystemClock().MonotonicNow());
    take_(*event);
    if (event->has_cursor()) cursor_ = event->cursor();
  }
  const absl::Status status = reader->status();
  if (stop.stop_requested()) return;
  if (ReasonOf(status) == "CURSOR_UNKNOWN") cursor_.reset();
  Log(LogLevel::kWarning, "the change feed is interrupted", {{"error", status}});
}

}  // namespace muster
