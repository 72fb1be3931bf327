// The child's side of attachment: how a node or a relay attaches to a parent relay.
#ifndef MUSTER_SERVICES_COMMON_ATTACH_ATTACH_CLIENT_H_
#define MUSTER_SERVICES_COMMON_ATTACH_ATTACH_CLIENT_H_

#include <grpcpp/channel.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/v1/attachment.pb.h"
#include "services/common/attach/attach_delegate.h"
#include "services/common/attach/attach_stream.h"
#include "services/common/attach/parent_stream.h"
#include "services/common/base/backoff.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/base/mutex.h"
#include "services/common/base/scheduled_task.h"
#include "services/common/base/timers.h"

namespace muster {

// The objects that an attachment shares with other parts of its process; they outlive it.
struct AttachRuntime {
  const Clock& clock;
  TimerService& timers;
  Executor& executor;
};

// Keeps this child attached to one of the parents. While the child is attached to a less-preferred
// parent, the client probes the preferred ones, and attaches to one that welcomes the child and has
// an upstream connection: the new stream is welcomed before the old one ends, and the delegate sees
// a loss and a welcome.
//
// Has no thread: one task on the executor opens, watches and replaces streams. It runs when a
// stream has changed, and at least every second. Thread-safe.
class AttachClient {
 public:
  // `delegate` outlives it.
  AttachClient(AttachClientOptions options, AttachDelegate& delegate, const AttachRuntime& runtime);
  // As above, with other connections, for tests.
  AttachClient(AttachClientOptions options, AttachDelegate& delegate, const AttachRuntime& runtime,
               std::unique_ptr<ParentConnector> connector);
  ~AttachClient() { Stop(); }

  AttachClient(const AttachClient&) = delete;
  AttachClient& operator=(const AttachClient&) = delete;

  // Begins to attach. Called once.
  void Start();
  // Ends the stream; after that the delegate is not called. Idempotent; not to be called by the
  // delegate.
  void Stop();

  // Enqueues a message for the parent. Returns false if this child is not attached, or if the queue
  // is full: OnWritable tells when to try again, OnWelcome when to start over.
  [[nodiscard]] bool Send(v1::AttachRequest message);

  // Reads the next message after AttachDelegate::MayReadNext returned false. May be called at any
  // time.
  void ResumeReading();

  // Returns whether this child is attached.
  bool attached() const;
  // Address and channel of the current or last parent; empty and null before the first.
  std::string target() const;
  std::shared_ptr<grpc::Channel> channel() const;

 private:
  struct Parent {
    size_t index = 0;  // in the options
    std::string target;
    ParentConnection connection;
    std::shared_ptr<AttachStream> stream;
  };
  struct LastParent {
    std::string target;
    std::shared_ptr<grpc::Channel> channel;
  };

  // Run by step_.
  void Step();
  void Watch();
  void Attach();
  void HandleEnd(const absl::Status& end);
  void SkipTunnels();
  void Replace(Parent preferred);
  void StepCandidate();
  void Probe(size_t index);

  Parent MakeParent(size_t index, std::optional<std::string> current_relay) const;
  absl::Duration NextProbe() const;
  void SetParent(const Parent& parent) ABSL_LOCKS_EXCLUDED(mutex_);
  LastParent UpdateLast() const ABSL_LOCKS_EXCLUDED(mutex_);

  const AttachClientOptions options_;
  AttachDelegate& delegate_;
  const Clock& clock_;
  const std::unique_ptr<ParentConnector> connector_;
  const std::string instance_;
  const absl::Duration started_;  // monotonic

  // Used by step_, and by Stop after its end.
  // Without a stream while this child waits.
  Parent current_;
  Parent candidate_;                       // with a stream while a preferred parent is probed
  std::optional<absl::Status> replacing_;  // the candidate replaces the current parent, and why
  std::string direct_fault_;               // why a tunnel may be used; empty: it may not
  size_t next_ = 0;                        // the number of the next attempt since the last success
  absl::Duration attempt_at_;              // monotonic, as the next
  absl::Duration probe_at_;
  Backoff backoff_;

  mutable Mutex mutex_;
  std::shared_ptr<AttachStream> stream_ ABSL_GUARDED_BY(mutex_);  // of the current parent
  LastParent trying_ ABSL_GUARDED_BY(mutex_);                     // the current parent
  mutable LastParent last_ ABSL_GUARDED_BY(mutex_);  // the one that sent a welcome last

  mutable ScheduledTask step_;  // last: it uses the members above
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ATTACH_ATTACH_CLIENT_H_
