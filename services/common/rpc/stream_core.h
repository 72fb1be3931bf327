// The common part of streams of servers (server_stream.h) and clients (client_stream.h): reads on
// demand, a bounded queue of writes, callbacks one after another, and one end. It does not depend
// on gRPC, so tests drive it through every order of events.
#ifndef MUSTER_SERVICES_COMMON_RPC_STREAM_CORE_H_
#define MUSTER_SERVICES_COMMON_RPC_STREAM_CORE_H_

#include <cstddef>
#include <limits>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/common/base/executor.h"
#include "services/common/base/mutex.h"
#include "services/common/base/timers.h"
#include "services/common/errors/rpc.h"
#include "services/common/rpc/out_queue.h"

namespace muster {

struct StreamOptions {
  // True: callbacks run on the executor. False: on gRPC's threads, where they must not wait.
  bool on_executor = false;

  // The stream ends with first_late(first_within) if the peer sends no message for this long at its
  // begin. Zero: no limit.
  absl::Duration first_within = absl::Seconds(10);
  absl::Status (*first_late)(absl::Duration within) = errors::NoFirstMessage;

  // At a client: the longest time from the last read to the end of the call.
  absl::Duration end_within = absl::Seconds(10);

  // The largest queue, including the message that is being sent.
  size_t max_queued = 1;
  size_t max_queued_bytes = std::numeric_limits<size_t>::max();

  // The last message that was sent is kept for TakeSentMessage, so that its memory is used again.
  bool keep_sent = false;

  // OnWritable is called each time the queue has emptied, also without NotifyWhenWritable.
  bool notify_when_sent = false;
};

enum class Sent {
  kQueued,
  kFull,   // dropped: OnWritable is called once the queue is at most half full
  kEnded,  // dropped: the stream takes no more messages
};

// Which side ended a stream.
enum class EndedBy { kThisSide, kPeer };

// The state of one stream. Thread-safe.
//
// Callbacks never overlap, and none is called with a lock of the stream held. So a handler may call
// the stream from them, and may hold its own lock while it calls the stream. Without an
// executor a callback runs on the thread of the event: a thread of gRPC, or the caller of
// NotifyWhenWritable. With an executor each callback is a separate task. If the executor refuses
// one, the stream ends with OVERLOADED, and CallEnded may run on a thread of gRPC.
//
// CallEnded is called exactly once and last, after the call is over. The object that a derived
// class keeps itself alive with is released there and nowhere else.
class StreamCore : public std::enable_shared_from_this<StreamCore> {
 public:
  StreamCore(const StreamCore&) = delete;
  StreamCore& operator=(const StreamCore&) = delete;
  virtual ~StreamCore() = default;

  // Reads one more message. Two demands before a read begins count once. The next message may
  // arrive while the previous one is still being handled.
  void ReadNext();

  // Calls OnWritable once, as soon as the queue is at most half full. For streams on an executor:
  // elsewhere OnWritable would run inside of this call.
  void NotifyWhenWritable();

  // Returns whether the end of the stream is decided: nothing is read or sent any more.
  bool ended() const;

 protected:
  // Without `timers` there is no deadline for the first message.
  StreamCore(const StreamOptions& options, TimerService* timers);

  const StreamOptions& options() const { return options_; }

  // Begins to wait for the first message. Called once, before any event.
  void AwaitFirstMessage();

  // `last`: nothing follows; it is taken even if the queue is full.
  Sent Enqueue(std::unique_ptr<OutMessage> message, bool last);

  // Returns the message that was sent last; null without StreamOptions::keep_sent.
  std::unique_ptr<OutMessage> TakeSentMessage();

  // Events of the call, on gRPC's threads.
  void HandleRead(bool ok);
  void HandleWritten(bool ok);
  void HandleDone();

  // CallMessage has taken the message: the next one may be read into its place.
  void SlotFree();

  // Operations on the call. None is started after the last one, since mutex_ is held; they never
  // call back on the same stack.
  virtual void StartReading() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {}
  virtual void StartWriting(OutMessage& message, bool last) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {}
  virtual void CancelCall() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;

  // Ends the call once nothing more will be started. Called once, without a lock.
  virtual void CloseCall() = 0;

  // Runs `task` on the executor; false if it refuses.
  virtual bool Post(Executor::Task task) = 0;

  // Callbacks.
  virtual void CallMessage() {}
  virtual void CallHalfClosed() {}
  virtual void CallWritable() = 0;
  virtual void CallEnded(const absl::Status& status, EndedBy by) = 0;

  // The differences between the two kinds of streams.
  // Ends the stream from this side.
  virtual void Fail(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // A read failed.
  virtual void ReadsEnded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // A write failed; the queue was emptied.
  virtual void WriteFailed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // Enqueue took the last message.
  virtual void LastQueued() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // Returns whether the first message of the queue must not be written.
  virtual bool HoldsLast() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return false; }
  // Starts what else is due. Returns true to close the call.
  virtual bool Settle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;

  // Work to be done after the lock is released.
  struct Todo {
    std::unique_ptr<OutMessage> dropped;
    TimerId timer = 0;  // to cancel
    bool close = false;
    bool run = false;
  };
  // Starts what may be started. Called at the end of each change.
  Todo Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Do(Todo todo) ABSL_LOCKS_EXCLUDED(mutex_);

  // Empties the queue but for the message that is being written.
  void DropQueue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropCallbacks() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  bool CallbacksDue() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return message_due_ || half_closed_due_ || writable_due_ || done_;
  }

  mutable Mutex mutex_;
  // Its first message is being written, if writing_.
  OutQueue queue_ ABSL_GUARDED_BY(mutex_);
  // StartWriting was called, HandleWritten was not.
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  // Enqueue takes nothing more.
  bool sends_closed_ ABSL_GUARDED_BY(mutex_) = false;
  // StartWriting is not called any more.
  bool writes_closed_ ABSL_GUARDED_BY(mutex_) = false;
  // At a client: nothing follows the queue; the half-close was passed to gRPC.
  bool half_close_ ABSL_GUARDED_BY(mutex_) = false;
  bool half_closing_ ABSL_GUARDED_BY(mutex_) = false;
  // A read failed.
  bool reads_closed_ ABSL_GUARDED_BY(mutex_) = false;
  // The end is decided: `end_` and `by_` are final at the latest when the call is over.
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
  EndedBy by_ ABSL_GUARDED_BY(mutex_) = EndedBy::kPeer;
  // A thread runs callbacks, or a task is to do so.
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  bool half_closed_due_ ABSL_GUARDED_BY(mutex_) = false;
  bool writable_due_ ABSL_GUARDED_BY(mutex_) = false;
  // The call is over.
  bool done_ ABSL_GUARDED_BY(mutex_) = false;

 private:
  enum class Due { kNothing, kMessage, kHalfClosed, kWritable, kEnd };

  void FirstLate();
  // Makes OnWritable due if it is wanted and there is room. Not part of Advance, so that OnWritable
  // never runs inside of a Send, whose caller may hold locks.
  void NoteRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run();
  bool RunOnce();
  void CallEnd();
  bool Refused();
  Due TakeDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const StreamOptions options_;
  TimerService* const timers_;

  TimerId timer_ ABSL_GUARDED_BY(mutex_) = 0;
  bool first_came_ ABSL_GUARDED_BY(mutex_) = false;
  bool want_read_ ABSL_GUARDED_BY(mutex_) = false;
  // StartReading was called, HandleRead was not.
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  // A message was read and CallMessage has not taken it.
  bool slot_full_ ABSL_GUARDED_BY(mutex_) = false;
  bool message_due_ ABSL_GUARDED_BY(mutex_) = false;
  // OnWritable is wanted.
  bool notify_ ABSL_GUARDED_BY(mutex_) = false;
  // CloseCall was called.
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  // Messages to destroy without the lock.
  std::unique_ptr<OutMessage> dropped_ ABSL_GUARDED_BY(mutex_);
  // By StreamOptions::keep_sent.
  std::unique_ptr<OutMessage> sent_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_STREAM_CORE_H_
