#include "services/common/service/feed_follower.h"

#include <algorithm>
#include <utility>

#include "absl/random/random.h"
#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/status.h"

namespace muster {
namespace {

constexpr absl::Duration kFirstBackOff = absl::Milliseconds(200);
constexpr absl::Duration kLongestBackOff = absl::Seconds(10);
// The aggregator says that it lives every 5 s.
constexpr absl::Duration kSilence = absl::Seconds(15);

// A stream that one thread reads, as with a blocking call. But that would make the thread one of
// those that poll for gRPC: it would wake for heartbeats, which it can only hand on.
class FeedReader : public grpc::ClientReadReactor<v1::FollowChangesResponse> {
 public:
  // `context` and `request` outlive it.
  FeedReader(v1::ChangeService::Stub& stub, grpc::ClientContext* context,
             const v1::FollowChangesRequest* request) {
    stub.async()->FollowChanges(context, request, this);
    // Reads are begun by the thread that waits for them, not in OnReadDone: without a hold gRPC
    // might be done with the call before the next one, and that one would never end.
    AddHold();
    StartRead(&arriving_);
    StartCall();
  }

  // Waits for the next event; false when there will be none: then Finish has to be called.
  bool Read(v1::FollowChangesResponse* event) {
    {
      MutexLock lock(mutex_);
      while (!read_.has_value()) changed_.Wait(mutex_);
      if (!*std::exchange(read_, std::nullopt)) return false;
    }
    event->Swap(&arriving_);
    StartRead(&arriving_);
    return true;
  }

  grpc::Status Finish() {
    RemoveHold();
    MutexLock lock(mutex_);
    while (!end_.has_value()) changed_.Wait(mutex_);
    return *end_;
  }

  void OnReadDone(bool ok) override {
    MutexLock lock(mutex_);
    read_ = ok;
    changed_.NotifyAll();
  }

  void OnDone(const grpc::Status& status) override {
    MutexLock lock(mutex_);
    end_ = status;
    changed_.NotifyAll();
  }

 private:
  v1::FollowChangesResponse arriving_;
  Mutex mutex_;
  CondVar changed_;
  std::optional<bool> read_ ABSL_GUARDED_BY(mutex_);  // how the newest read ended, once
  std::optional<grpc::Status> end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

FeedFollower::FeedFollower(std::shared_ptr<grpc::Channel> channel,
                           std::function<void(const v1::FollowChangesResponse&)> take)
    : stub_(v1::ChangeService::NewStub(std::move(channel))),
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
  grpc::ClientContext context;
  const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
  v1::FollowChangesRequest request;
  if (cursor_) request.set_cursor(*cursor_);
  request.set_batch_pairs(true);
  FeedReader stream(*stub_, &context, &request);
  v1::FollowChangesResponse event;
  while (stream.Read(&event)) {
    heard_at_ = absl::ToInt64Nanoseconds(SystemClock().MonotonicNow());
    take_(event);
    if (event.has_cursor()) cursor_ = event.cursor();
  }
  const absl::Status status = FromGrpc(stream.Finish());
  if (stop.stop_requested()) return;
  if (ReasonOf(status) == "CURSOR_UNKNOWN") cursor_.reset();
  Log(LogLevel::kWarning, "the change feed is interrupted", {{"error", status}});
}

}  // namespace muster
