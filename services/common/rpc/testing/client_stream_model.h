#ifndef MUSTER_SERVICES_COMMON_RPC_TESTING_CLIENT_STREAM_MODEL_H_
#define MUSTER_SERVICES_COMMON_RPC_TESTING_CLIENT_STREAM_MODEL_H_

#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "services/common/base/fake_clock.h"
#include "services/common/rpc/client_stream_core.h"
#include "services/common/rpc/testing/stream_model.h"

// A client's stream whose call is the test.
namespace muster::testing {

// The actions of the handler in its callbacks.
enum class OnAnswer { kNothing, kReadNext, kReadAndSend, kHalfClose, kCancel };
enum class OnRoom { kNothing, kSend };

struct ClientPolicy {
  OnAnswer answer = OnAnswer::kNothing;
  OnRoom room = OnRoom::kNothing;
  bool on_executor = false;
};

struct ClientTrace : StreamTrace {
  bool half_close_out = false;
  bool half_closed = false;
  bool cancelled = false;
  bool closed = false;
  bool end_awaited = false;
};

// Every call of it checks what holds at any time.
class TestClientStream : public ClientStreamCore {
 public:
  TestClientStream(const ClientPolicy& policy, ClientTrace& trace, TimerService* timers)
      : ClientStreamCore(OptionsOf(policy), timers), policy_(policy), trace_(trace) {}

  void Start() {
    self_ = std::static_pointer_cast<TestClientStream>(shared_from_this());
    AwaitFirstMessage();
  }

  Sent Send(bool last = false) {
    auto message = std::make_unique<NumberedMessage>();
    message->number = trace_.next_number;
    const Sent sent = Enqueue(std::move(message), last);
    if (sent == Sent::kQueued) ++trace_.next_number;
    return sent;
  }

  // Events.
  void Read(bool ok) {
    trace_.read_out = false;
    HandleRead(ok);
  }
  void Written(bool ok) {
    trace_.write_out = false;
    HandleWritten(ok);
  }
  void EndLate() {
    trace_.end_awaited = false;
    HandleEndLate();
  }
  void Done(const absl::Status& status) {
    trace_.done = true;
    HandleDone(status);
  }

 private:
  static StreamOptions OptionsOf(const ClientPolicy& policy) {
    StreamOptions options;
    options.on_executor = policy.on_executor;
    options.max_queued = 2;
    options.notify_when_sent = true;
    return options;
  }

  // Nothing may be started once the call was closed, or its half.
  void StartReading() override {
    EXPECT_FALSE(trace_.read_out || trace_.closed || trace_.done);
    trace_.read_out = true;
  }
  void StartWriting(OutMessage& message, bool last) override {
    EXPECT_FALSE(trace_.write_out || trace_.half_closed || trace_.closed || trace_.done);
    trace_.write_out = true;
    trace_.half_closed = last;
    trace_.started.push_back(static_cast<NumberedMessage&>(message).number);
  }
  void StartHalfClosing() override {
    EXPECT_FALSE(trace_.write_out || trace_.half_closed || trace_.closed || trace_.done);
    trace_.half_closed = trace_.half_close_out = true;
  }
  void AwaitEnd() override {
    EXPECT_FALSE(trace_.end_awaited || trace_.done);
    trace_.end_awaited = true;
  }
  void CancelCall() override {
    EXPECT_FALSE(trace_.cancelled);
    trace_.cancelled = true;
  }
  void CloseCall() override {
    EXPECT_FALSE(trace_.closed);
    ended();  // no lock is held
    trace_.closed = true;
  }
  bool Post(Executor::Task task) override {
    trace_.tasks.push_back(std::move(task));
    return true;
  }

  void CallMessage() override {
    const InCallback check(*this, trace_);
    EXPECT_FALSE(trace_.muted);
    ++trace_.messages;
    SlotFree();
    switch (policy_.answer) {
      case OnAnswer::kNothing:
        return;
      case OnAnswer::kReadNext:
        return ReadNext();
      case OnAnswer::kReadAndSend:
        ReadNext();
        Send();
        return;
      case OnAnswer::kHalfClose:
        return HalfClose();
      case OnAnswer::kCancel:
        return Cancel(absl::AbortedError("bad answer"));
    }
  }
  void CallWritable() override {
    const InCallback check(*this, trace_);
    EXPECT_FALSE(trace_.muted);
    {
      MutexLock lock(mutex_);
      EXPECT_LE(queue_.count(), 1u);  // half of it
    }
    ++trace_.writables;
    if (policy_.room == OnRoom::kSend) Send();
  }
  void CallEnded(const absl::Status& status, EndedBy by) override {
    InCallback(*this, trace_).NoteEnd(status, by);
    const auto self = std::move(self_);
  }

  const ClientPolicy policy_;
  ClientTrace& trace_;
  std::shared_ptr<TestClientStream> self_;  // until CallEnded
};

// One run: a stream, the events that may come now, and the calls that its handler may make.
class ClientRun {
 public:
  explicit ClientRun(const ClientPolicy& policy)
      : stream_(std::make_shared<TestClientStream>(policy, trace, &clock)) {
    stream_->Start();
  }

  // Does one of the things that may happen now.
  template <typename Choices>
  void Step(Choices& choices) {
    using Thing = void (ClientRun::*)();
    std::vector<Thing> possible = {&ClientRun::ReadNext, &ClientRun::Send, &ClientRun::Notify};
    std::vector<Thing> ends = {&ClientRun::SendLast, &ClientRun::HalfClose, &ClientRun::Cancel};
    if (trace.read_out) {
      possible.push_back(&ClientRun::ReadOk);
      ends.push_back(&ClientRun::ReadFails);
    }
    if (trace.write_out) {
      possible.push_back(&ClientRun::WriteOk);
      ends.push_back(&ClientRun::WriteFails);
    }
    if (trace.half_close_out) possible.push_back(&ClientRun::HalfCloseDone);
    if (!trace.tasks.empty()) possible.push_back(&ClientRun::RunTask);
    if (clock.waiting_timers() > 0) ends.push_back(&ClientRun::TimePasses);
    if (trace.end_awaited) ends.push_back(&ClientRun::EndIsLate);
    if (MayBeDone()) {
      ends.insert(ends.end(),
                  {&ClientRun::DoneOk, &ClientRun::DoneAborted, &ClientRun::DoneCancelled});
    }
    DoOne(*this, possible, ends, choices);
  }

  // Lets everything that is out end, and the stream with it.
  void Conclude() {
    for (int steps = 0; !trace.done; ++steps) {
      ASSERT_LT(steps, 100) << "the stream does not end";
      if (!trace.tasks.empty()) {
        RunTask();
      } else if (trace.write_out) {
        WriteFails();
      } else if (trace.half_close_out) {
        HalfCloseDone();
      } else if (trace.read_out) {
        ReadFails();
      } else if (MayBeDone()) {
        DoneOk();
      } else {
        ReadNext();
      }
    }
    while (!trace.tasks.empty()) RunTask();
    EXPECT_EQ(clock.waiting_timers(), 0u);
  }

  void Check() {
    EXPECT_EQ(trace.ends, 1);
    EXPECT_TRUE(trace.closed);
    EXPECT_EQ(stream_->Send(), Sent::kEnded);
    EXPECT_EQ(trace.by == EndedBy::kThisSide, !trace.end.ok() && trace.end != status_);
    EXPECT_TRUE(trace.cancelled || trace.by == EndedBy::kPeer);
    EXPECT_TRUE(trace.cancelled || trace.end == status_);
    for (size_t i = 0; i < trace.started.size(); ++i) {
      EXPECT_EQ(trace.started[i], static_cast<int>(i));
    }
    const std::weak_ptr<TestClientStream> weak = stream_;
    stream_.reset();
    EXPECT_TRUE(weak.expired());
  }

  // Events.
  void ReadOk() { stream_->Read(true); }
  void ReadFails() { stream_->Read(false); }
  void EndIsLate() {
    trace.muted = true;
    stream_->EndLate();
  }
  void WriteOk() { stream_->Written(true); }
  void WriteFails() { stream_->Written(false); }
  void HalfCloseDone() { trace.half_close_out = false; }
  void DoneOk() { Done(absl::OkStatus()); }
  void DoneAborted() { Done(absl::InternalError("said the server")); }
  void DoneCancelled() { Done(absl::CancelledError("")); }
  void RunTask() { trace.RunTask(); }
  void TimePasses() { clock.Advance(absl::Seconds(10)); }

  // Calls of the handler.
  void ReadNext() { stream_->ReadNext(); }
  void Send() { stream_->Send(); }
  void SendLast() { stream_->Send(/*last=*/true); }
  void HalfClose() { stream_->HalfClose(); }
  void Notify() { stream_->NotifyWhenWritable(); }
  void Cancel() {
    trace.muted = true;
    stream_->Cancel(absl::AbortedError("enough"));
  }

  TestClientStream& stream() { return *stream_; }

  FakeClock clock;
  ClientTrace trace;

 private:
  // gRPC keeps a call for which a hold is left.
  bool MayBeDone() const {
    return trace.closed && !trace.read_out && !trace.write_out && !trace.half_close_out &&
           !trace.done;
  }
  void Done(const absl::Status& status) {
    status_ = status;
    stream_->Done(status);
  }

  std::shared_ptr<TestClientStream> stream_;
  absl::Status status_;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_COMMON_RPC_TESTING_CLIENT_STREAM_MODEL_H_
