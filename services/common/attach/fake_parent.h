// Parents that a test plays, without connections.
#ifndef MUSTER_SERVICES_COMMON_ATTACH_FAKE_PARENT_H_
#define MUSTER_SERVICES_COMMON_ATTACH_FAKE_PARENT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "muster/v1/attachment.pb.h"
#include "services/common/attach/attach_delegate.h"
#include "services/common/attach/parent_stream.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/base/text_values.h"
#include "services/common/rpc/proto_time.h"

namespace muster {

// One stream. The test delivers only messages that were asked for. Thread-safe; events are called
// with no lock held.
class FakeParent {
 public:
  static constexpr absl::Duration kInterval = absl::Seconds(15);

  explicit FakeParent(std::string relay = "spiffe://fleet.test/service/relay/r1")
      : relay_(std::move(relay)) {}

  OpenParentStream Opener() {
    return [this](ParentStreamEvents& events) {
      events_ = &events;
      return std::make_unique<Stream>(*this);
    };
  }

  void Deliver(v1::AttachResponse message) {
    {
      MutexLock lock(mutex_);
      ASSERT_TRUE(std::exchange(reading_, false)) << "no message was asked for";
    }
    events_->OnMessage(std::move(message));
  }
  void Greet() {
    v1::AttachResponse message;
    message.mutable_greeting()->set_relay(relay_);
    Deliver(std::move(message));
  }
  void Welcome(bool connected = true, const std::vector<std::string>& path = {"root"}) {
    v1::AttachResponse message;
    ToProto(kInterval, message.mutable_welcome()->mutable_interval());
    for (const std::string& relay : path) message.mutable_welcome()->add_path(relay);
    message.mutable_welcome()->set_connected(connected);
    Deliver(std::move(message));
  }
  // The connection takes what was sent.
  void Drain() {
    SetFull(false);
    events_->OnWritable();
  }
  // Ends the stream, or lets the end of a cancelled one happen.
  void End(absl::Status why = absl::OkStatus()) {
    {
      MutexLock lock(mutex_);
      if (cancelled_) why = *cancelled_;
      cancelled_ = why;
      reading_ = false;
    }
    EndOnce(why);
  }

  void SetFull(bool full) {
    MutexLock lock(mutex_);
    full_ = full;
  }
  void SetGreetingCheck(absl::Status check) {
    MutexLock lock(mutex_);
    greeting_check_ = std::move(check);
  }
  // A cancelled stream ends when the test calls End.
  void HoldEnd() {
    MutexLock lock(mutex_);
    hold_end_ = true;
  }

  const std::string& relay() const { return relay_; }
  bool reading() const {
    MutexLock lock(mutex_);
    return reading_;
  }
  // The number of demands for a message.
  int reads() const {
    MutexLock lock(mutex_);
    return reads_;
  }
  std::optional<absl::Status> cancelled() const {
    MutexLock lock(mutex_);
    return cancelled_;
  }
  std::vector<v1::AttachRequest> sent() const {
    MutexLock lock(mutex_);
    return sent_;
  }
  std::vector<v1::AttachRequest> TakeSent() {
    MutexLock lock(mutex_);
    return std::exchange(sent_, {});
  }

 private:
  class Stream final : public ParentStream {
   public:
    explicit Stream(FakeParent& parent) : parent_(parent) {}

    void ReadNext() override {
      MutexLock lock(parent_.mutex_);
      parent_.reading_ = !parent_.cancelled_;
      ++parent_.reads_;
    }
    Sent Send(v1::AttachRequest message) override {
      MutexLock lock(parent_.mutex_);
      if (parent_.cancelled_) return Sent::kEnded;
      if (parent_.full_) return Sent::kFull;
      parent_.sent_.push_back(std::move(message));
      return Sent::kQueued;
    }
    void Cancel(const absl::Status& why) override {
      {
        MutexLock lock(parent_.mutex_);
        if (parent_.cancelled_) return;
        parent_.cancelled_ = why;
        parent_.reading_ = false;
        if (parent_.hold_end_) return;
      }
      parent_.EndOnce(why);
    }
    void Close() override {
      Cancel(absl::CancelledError("closed"));
      parent_.EndOnce(absl::CancelledError("closed"));
    }
    absl::Status CheckGreeting(const v1::AttachResponse::Greeting&) override {
      MutexLock lock(parent_.mutex_);
      return parent_.greeting_check_;
    }

   private:
    FakeParent& parent_;
  };

  void EndOnce(const absl::Status& why) {
    {
      MutexLock lock(mutex_);
      if (std::exchange(ended_, true)) return;
    }
    events_->OnEnd(why);
  }

  const std::string relay_;
  ParentStreamEvents* events_ = nullptr;  // set before the first event
  mutable Mutex mutex_;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  int reads_ ABSL_GUARDED_BY(mutex_) = 0;
  bool full_ ABSL_GUARDED_BY(mutex_) = false;  // Send returns kFull
  bool hold_end_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status greeting_check_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::AttachRequest> sent_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> cancelled_ ABSL_GUARDED_BY(mutex_);
};

// Makes a FakeParent for each connection, by port. Thread-safe.
class FakeConnector final : public ParentConnector {
 public:
  explicit FakeConnector(const Clock& clock) : clock_(clock) {}

  ParentConnection Connect(const HostPort& target) override {
    MutexLock lock(mutex_);
    auto& parents = parents_[target.port];
    parents.push_back(std::make_unique<FakeParent>("relay at " + target.ToString()));
    return {nullptr, parents.back()->Opener()};
  }
  absl::StatusOr<v1::AttachStatement> Sign(const v1::AttachResponse::Greeting& greeting) override {
    v1::AttachStatement statement;
    statement.set_relay(greeting.relay());
    ToProto(clock_.Now() + absl::Hours(1), statement.mutable_expire_time());
    return statement;
  }

  size_t connections(uint16_t port) {
    MutexLock lock(mutex_);
    return parents_[port].size();
  }
  // The newest connection.
  FakeParent& at(uint16_t port) {
    MutexLock lock(mutex_);
    return *parents_.at(port).back();
  }

 private:
  const Clock& clock_;
  Mutex mutex_;
  std::map<uint16_t, std::vector<std::unique_ptr<FakeParent>>> parents_ ABSL_GUARDED_BY(mutex_);
};

// Records its calls. Thread-safe.
class RecordingDelegate final : public AttachDelegate {
 public:
  int64_t RevocationsVersion() override { return 7; }
  absl::Status OnWelcome(const v1::AttachResponse::Welcome&, bool first) override {
    Record(first ? "welcome" : "welcome again");
    MutexLock lock(mutex_);
    return welcome_result_;
  }
  absl::Status OnMessage(v1::AttachResponse) override {
    Record("message");
    return absl::OkStatus();
  }
  bool MayReadNext() override {
    MutexLock lock(mutex_);
    return !full_;
  }
  void OnLost(const absl::Status&) override { Record("lost"); }
  void OnWritable() override { Record("writable"); }

  // Sets that it takes no further message.
  void SetFull(bool full) {
    MutexLock lock(mutex_);
    full_ = full;
  }
  void SetWelcomeResult(absl::Status result) {
    MutexLock lock(mutex_);
    welcome_result_ = std::move(result);
  }
  std::vector<std::string> TakeCalls() {
    MutexLock lock(mutex_);
    return std::exchange(calls_, {});
  }

 private:
  void Record(const char* call) {
    MutexLock lock(mutex_);
    calls_.emplace_back(call);
  }

  Mutex mutex_;
  bool full_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status welcome_result_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ATTACH_FAKE_PARENT_H_
