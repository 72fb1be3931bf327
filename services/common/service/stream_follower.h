// Follows a server stream without end: opens it again after each end.
#ifndef MUSTER_SERVICES_COMMON_SERVICE_STREAM_FOLLOWER_H_
#define MUSTER_SERVICES_COMMON_SERVICE_STREAM_FOLLOWER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/common/base/backoff.h"
#include "services/common/base/clock.h"
#include "services/common/base/error.h"
#include "services/common/base/executor.h"
#include "services/common/base/mutex.h"
#include "services/common/base/scheduled_task.h"
#include "services/common/base/timers.h"
#include "services/common/rpc/client_stream.h"
#include "services/common/rpc/service_channel.h"

namespace muster {

// One stream at a time. After its end, and once all of its messages are handled, the follower waits
// by a back-off with full jitter and opens the next one; a stream that brought a message resets the
// back-off. Thread-safe.
template <typename Request, typename Response>
class StreamFollower {
 public:
  // Called once a message is handled, from any thread. An error ends the stream.
  using Done = absl::AnyInvocable<void(const absl::Status& status)>;

  struct Options {
    GetChannel channel;
    std::string method;  // "/muster.v1.ChangeService/FollowChanges"
    BackoffOptions backoff;
    // No more messages are read while this many are not handled.
    size_t max_pending = 1;
    // Returns the request of the next stream.
    std::function<Request()> request;
    // Called on the executor, one message at a time.
    std::function<void(Response message, Done done)> handle;
    // The stream has ended and all of its messages are handled. `why`: the first error of a Done,
    // else the error of the stream; UNAVAILABLE if the service ended it without an error, for
    // instance to stop. `received`: it brought a message. Must not block. Not called after Stop.
    std::function<void(const absl::Status& why, bool received)> ended;
  };

  // Opens the first stream soon. `clock`, `timers` and `executor` outlive this object.
  StreamFollower(Options options, const Clock& clock, TimerService& timers, Executor& executor)
      : options_(std::move(options)),
        clock_(clock),
        executor_(executor),
        received_at_(absl::ToInt64Nanoseconds(clock.MonotonicNow())),
        backoff_(options_.backoff),
        open_(timers, executor, [this] { Open(); }) {
    open_.RunAfter(absl::ZeroDuration());
  }

  ~StreamFollower() { Stop(); }

  StreamFollower(const StreamFollower&) = delete;
  StreamFollower& operator=(const StreamFollower&) = delete;

  // Cancels the stream and waits until all of its messages are handled. Idempotent. Must not be
  // called from the functions of the options.
  void Stop() {
    stopping_ = true;
    open_.Stop();
    owner_.reset();  // cancels, and waits for the last callback
    if (session_ != nullptr) session_->AwaitHandled();
  }

  // Returns the time since the last message, of any stream; before the first one, the time since
  // the construction.
  absl::Duration silence() const {
    return clock_.MonotonicNow() - absl::Nanoseconds(received_at_.load());
  }

  // Returns whether any stream has brought a message.
  bool received() const { return received_; }

  // Returns whether the open stream has brought a message.
  bool receiving() const { return receiving_; }

 private:
  using Stream = ClientStream<Request, Response>;

  // One stream.
  class Session final : public ClientStreamHandler<Request, Response>,
                        public std::enable_shared_from_this<Session> {
   public:
    explicit Session(StreamFollower& follower) : follower_(follower) {}

    void OnStart(const std::shared_ptr<Stream>& stream) override {
      stream_ = stream;
      stream->ReadNext();
      stream->SendLast(follower_.options_.request());
    }

    void OnMessage(Response message) override {
      follower_.Received();
      received_ = true;
      bool read = false;
      {
        MutexLock lock(mutex_);
        if (!failure_.ok()) return;  // the stream is being cancelled
        read = ++pending_ < follower_.options_.max_pending;
        paused_ = !read;
      }
      if (read) Read();
      follower_.options_.handle(
          std::move(message),
          [self = this->shared_from_this()](const absl::Status& status) { self->Handled(status); });
    }

    void OnEnd(const absl::Status& status, EndedBy) override {
      MutexLock lock(mutex_);
      end_ = status;
      if (pending_ == 0) follower_.SessionEnded(failure_.ok() ? status : failure_, received_);
    }

    void AwaitHandled() {
      MutexLock lock(mutex_);
      while (pending_ != 0) handled_.Wait(mutex_);
    }

   private:
    void Read() {
      if (const auto stream = stream_.lock()) stream->ReadNext();
    }

    // Notifies under the lock, because AwaitHandled is followed by the end of the follower.
    void Handled(const absl::Status& status) {
      bool read = false;
      {
        MutexLock lock(mutex_);
        failure_.Update(status);
        read = failure_.ok() && std::exchange(paused_, false);
        --pending_;
        if (pending_ == 0 && end_) {
          follower_.SessionEnded(failure_.ok() ? *end_ : failure_, received_);
        }
        handled_.NotifyAll();
      }
      if (read) Read();
      if (status.ok()) return;
      if (const auto stream = stream_.lock()) stream->Cancel(status);
    }

    StreamFollower& follower_;
    std::weak_ptr<Stream> stream_;  // set in OnStart
    std::atomic<bool> received_ = false;
    Mutex mutex_;
    CondVar handled_;
    size_t pending_ ABSL_GUARDED_BY(mutex_) = 0;
    bool paused_ ABSL_GUARDED_BY(mutex_) = false;  // pending_ was at its limit
    absl::Status failure_ ABSL_GUARDED_BY(mutex_);
    std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
  };

  // Runs on the executor, when no other stream is open.
  void Open() {
    owner_.reset();
    session_ = std::make_shared<Session>(*this);
    StreamOptions options;
    options.on_executor = true;
    owner_ = std::make_unique<StreamOwner<Request, Response>>(Stream::Start(
        options_.channel(), options_.method, options, session_, {.executor = &executor_}));
  }

  void Received() {
    received_at_ = absl::ToInt64Nanoseconds(clock_.MonotonicNow());
    received_ = receiving_ = true;
  }

  // Called once a session, with its lock held.
  void SessionEnded(const absl::Status& why, bool received) {
    receiving_ = false;
    if (stopping_) return;
    if (received) backoff_.Reset();
    options_.ended(why.ok() ? absl::UnavailableError("the service ended the stream") : why,
                   received);
    open_.RunAfter(backoff_.Next(RetryAfterOf(why)));
  }

  const Options options_;
  const Clock& clock_;
  Executor& executor_;
  std::atomic<int64_t> received_at_;  // monotonic nanoseconds; at first of the construction
  std::atomic<bool> received_ = false;
  std::atomic<bool> receiving_ = false;
  std::atomic<bool> stopping_ = false;
  // Used by Open and SessionEnded, which never overlap, and by Stop after them.
  Backoff backoff_;
  std::shared_ptr<Session> session_;
  std::unique_ptr<StreamOwner<Request, Response>> owner_;
  ScheduledTask open_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_SERVICE_STREAM_FOLLOWER_H_
