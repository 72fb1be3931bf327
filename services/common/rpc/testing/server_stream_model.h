#ifndef MUSTER_SERVICES_COMMON_RPC_TESTING_SERVER_STREAM_MODEL_H_
#define MUSTER_SERVICES_COMMON_RPC_TESTING_SERVER_STREAM_MODEL_H_

#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "services/common/base/fake_clock.h"
#include "services/common/rpc/server_stream_core.h"
#include "services/common/rpc/testing/stream_model.h"

// A server's stream whose call is the test.
namespace muster::testing {

// The actions of the handler in its callbacks.
enum class InMessage { kNothing, kReadNext, kReadAndSend, kEnd, kCancel, kSendLast };
enum class InWritable { kNothing, kSendAndNotify };
enum class InHalfClose { kNothing, kEnd };
enum class Tasks { kInline, kExecutor, kRefusingExecutor };

struct Policy {
  InMessage message = InMessage::kNothing;
  InWritable writable = InWritable::kNothing;
  InHalfClose half_close = InHalfClose::kEnd;
  Tasks tasks = Tasks::kInline;
};

struct Trace : StreamTrace {
  bool cancelled_here = false;
  int finished = 0;
  int half_closes = 0;
  absl::Status final;
  int refused_tasks = 0;
  std::vector<int> delivered;  // numbers of the messages whose write succeeded
};

StreamOptions OptionsOf(const Policy& policy) {
  StreamOptions options;
  options.on_executor = policy.tasks != Tasks::kInline;
  options.max_queued = 2;
  return options;
}

// A stream whose call is the test. Every call of it checks what holds at any time.
class TestStream : public ServerStreamCore {
 public:
  TestStream(const Policy& policy, Trace& trace, TimerService* timers)
      : ServerStreamCore(OptionsOf(policy), timers), policy_(policy), trace_(trace) {}

  void Start() {
    self_ = std::static_pointer_cast<TestStream>(shared_from_this());
    AwaitFirstMessage();
  }

  Sent Send(bool last = false) {
    auto message = std::make_unique<NumberedMessage>();
    message->number = trace_.next_number;
    message->bytes = 1;
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
    if (ok) trace_.delivered.push_back(trace_.started.back());
    HandleWritten(ok);
  }
  void PeerCancels() { HandleCancel(); }
  void Done() {
    trace_.done = true;
    HandleDone();
  }

  size_t queued() {
    MutexLock lock(mutex_);
    return queue_.count();
  }

 private:
  void StartReading() override {
    EXPECT_FALSE(trace_.read_out);
    EXPECT_EQ(trace_.finished, 0);
    trace_.read_out = true;
  }
  void StartWriting(OutMessage& message, bool last) override {
    EXPECT_FALSE(trace_.write_out);
    EXPECT_FALSE(last);
    EXPECT_EQ(trace_.finished, 0);
    trace_.write_out = true;
    trace_.started.push_back(static_cast<NumberedMessage&>(message).number);
  }
  void CancelCall() override {
    EXPECT_FALSE(trace_.done);
    trace_.cancelled_here = true;
  }
  void FinishCall(const absl::Status& status, std::unique_ptr<OutMessage> last) override {
    EXPECT_EQ(trace_.finished++, 0);
    EXPECT_FALSE(trace_.write_out);
    EXPECT_EQ(trace_.in_callback, 0);
    EXPECT_TRUE(ended());
    trace_.final = status;
    if (last == nullptr) return;
    EXPECT_TRUE(status.ok());
    trace_.started.push_back(static_cast<NumberedMessage&>(*last).number);
    trace_.delivered.push_back(trace_.started.back());
  }
  bool Post(Executor::Task task) override {
    if (policy_.tasks == Tasks::kRefusingExecutor && ++trace_.refused_tasks % 2 == 0) return false;
    trace_.tasks.push_back(std::move(task));
    return true;
  }

  void CallMessage() override {
    const InCallback check(*this, trace_);
    EXPECT_FALSE(trace_.done || trace_.muted);
    ++trace_.messages;
    SlotFree();
    switch (policy_.message) {
      case InMessage::kNothing:
        return;
      case InMessage::kReadNext:
        return ReadNext();
      case InMessage::kReadAndSend:
        ReadNext();
        Send();
        return;
      case InMessage::kEnd:
        return End(absl::InternalError("bad message"));
      case InMessage::kCancel:
        return Cancel(absl::InternalError("bad message"));
      case InMessage::kSendLast:
        Send(/*last=*/true);
        return;
    }
  }
  void CallHalfClosed() override {
    const InCallback check(*this, trace_);
    EXPECT_FALSE(trace_.done || trace_.muted);
    EXPECT_EQ(trace_.half_closes++, 0);
    if (policy_.half_close == InHalfClose::kEnd) End(absl::OkStatus());
  }
  void CallWritable() override {
    const InCallback check(*this, trace_);
    EXPECT_FALSE(trace_.done || trace_.muted);
    EXPECT_LE(queued(), 1u);  // half of it
    ++trace_.writables;
    if (policy_.writable == InWritable::kNothing) return;
    if (Send() == Sent::kQueued) NotifyWhenWritable();
  }
  void CallEnded(const absl::Status& status, EndedBy by) override {
    InCallback(*this, trace_).NoteEnd(status, by);
    const auto self = std::move(self_);
  }

  const Policy policy_;
  Trace& trace_;
  std::shared_ptr<TestStream> self_;  // until CallEnded
};

// One run: a stream, the events that may come now, and the calls that its handler may make.
class StreamRun {
 public:
  explicit StreamRun(const Policy& policy)
      : stream_(std::make_shared<TestStream>(policy, trace, &clock)) {
    stream_->Start();
  }

  // Does one of the things that may happen now.
  template <typename Choices>
  void Step(Choices& choices) {
    std::vector<void (StreamRun::*)()> possible = {&StreamRun::ReadNext, &StreamRun::Send,
                                                   &StreamRun::Notify};
    std::vector<void (StreamRun::*)()> ends = {&StreamRun::SendLast, &StreamRun::EndSend,
                                               &StreamRun::EndDrop, &StreamRun::Cancel};
    if (!trace.done) {
      if (trace.read_out)
        possible.insert(possible.end(), {&StreamRun::ReadOk, &StreamRun::ReadFails});
      if (trace.write_out)
        possible.insert(possible.end(), {&StreamRun::WriteOk, &StreamRun::WriteFails});
      if (!peer_cancelled_) ends.push_back(&StreamRun::PeerCancels);
      if (MayBeDone()) possible.push_back(&StreamRun::Done);
    }
    if (!trace.tasks.empty()) possible.push_back(&StreamRun::RunTask);
    if (clock.waiting_timers() > 0) ends.push_back(&StreamRun::TimePasses);
    DoOne(*this, possible, ends, choices);
    EXPECT_LE(stream_->queued(), 3u);  // two, and one that is the last
  }

  // Lets everything that is out end, and the stream with it.
  void Conclude() {
    EndSend();
    while (!trace.done) {
      if (!trace.tasks.empty()) {
        RunTask();
      } else if (trace.write_out) {
        trace.cancelled_here || peer_cancelled_ ? WriteFails() : WriteOk();
      } else if (MayBeDone()) {
        Done();
      } else if (trace.read_out && trace.finished == 1) {
        ReadFails();
      } else {
        ADD_FAILURE() << "the stream does not end";
        return;
      }
    }
    while (!trace.tasks.empty()) RunTask();
    EXPECT_EQ(clock.waiting_timers(), 0u);
  }

  void Check() {
    EXPECT_EQ(trace.finished, 1);
    EXPECT_EQ(trace.ends, 1);
    EXPECT_EQ(trace.final, trace.end);
    EXPECT_TRUE(stream_->ended());
    EXPECT_EQ(stream_->Send(), Sent::kEnded);
    for (size_t i = 1; i < trace.started.size(); ++i) {
      EXPECT_LT(trace.started[i - 1], trace.started[i]);
    }
    if (trace.by == EndedBy::kPeer) {
      EXPECT_TRUE(absl::IsCancelled(trace.end));
      EXPECT_TRUE(peer_cancelled_ || write_failed_);
      if (trace.refused_tasks == 0) {
        EXPECT_EQ(trace.messages, read_before_end_);
      }
    }
    if (!peer_cancelled_ && !write_failed_ && trace.end.ok() && !dropped_) {
      EXPECT_EQ(static_cast<int>(trace.delivered.size()), trace.next_number);
    }
    const std::weak_ptr<TestStream> weak = stream_;
    stream_.reset();
    EXPECT_TRUE(weak.expired());
  }

  // Events.
  void ReadOk() {
    if (!stream_->ended()) ++read_before_end_;
    stream_->Read(true);
  }
  void ReadFails() { stream_->Read(false); }
  void WriteOk() { stream_->Written(true); }
  void WriteFails() {
    write_failed_ = true;
    stream_->Written(false);
  }
  void PeerCancels() {
    peer_cancelled_ = true;
    stream_->PeerCancels();
  }
  void Done() { stream_->Done(); }
  void RunTask() { trace.RunTask(); }
  void TimePasses() { clock.Advance(absl::Seconds(10)); }

  // Calls of the handler.
  void ReadNext() { stream_->ReadNext(); }
  void Send() { stream_->Send(); }
  void SendLast() {
    Mute();
    stream_->Send(/*last=*/true);
  }
  void Notify() { stream_->NotifyWhenWritable(); }
  void EndSend() {
    Mute();
    stream_->End(absl::OkStatus());
  }
  void EndDrop() {
    Mute();
    dropped_ = dropped_ || !stream_->ended();
    stream_->End(absl::OkStatus(), Waiting::kDrop);
  }
  void Cancel() {
    Mute();
    dropped_ = true;
    stream_->Cancel(absl::AbortedError("enough"));
  }

  TestStream& stream() { return *stream_; }

  FakeClock clock;
  Trace trace;

 private:
  void Mute() { trace.muted = trace.muted || !stream_->ended(); }
  bool MayBeDone() const {
    return !trace.done && trace.finished == 1 && !trace.read_out && !trace.write_out;
  }

  std::shared_ptr<TestStream> stream_;
  bool peer_cancelled_ = false;
  bool write_failed_ = false;
  bool dropped_ = false;
  int read_before_end_ = 0;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_COMMON_RPC_TESTING_SERVER_STREAM_MODEL_H_
