// One attachment of a child to a parent, from the greeting to its end.
#ifndef MUSTER_SERVICES_COMMON_ATTACH_ATTACH_STREAM_H_
#define MUSTER_SERVICES_COMMON_ATTACH_ATTACH_STREAM_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/v1/attachment.pb.h"
#include "services/common/attach/attach_delegate.h"
#include "services/common/attach/parent_stream.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"

namespace muster {

// Callbacks of the stream run on threads of gRPC and call the delegate. The owner calls Start,
// Tick, End and Adopt, one at a time, and looks at the state after each call of `changed`. No lock
// is held while the delegate or `changed` is called. Thread-safe.
class AttachStream final : private ParentStreamEvents {
 public:
  struct Parts {
    const AttachClientOptions& options;
    AttachDelegate& delegate;
    const Clock& clock;
    SignStatement sign;
    std::string instance;
    absl::Duration started;  // when the process did; monotonic
    // Called after the first welcome, an offer and the end, on a thread of gRPC or in a call of the
    // owner. Must not block or destroy the stream.
    std::function<void()> changed;
    // Returns the description of the tunnel that the stream uses; empty for a direct connection.
    std::function<std::string()> link = [] { return std::string(); };
  };

  // An attachment that has to be accepted by Adopt first is a candidate: it is welcomed while
  // another attachment to `current_relay` exists, and does not call the delegate before Adopt.
  // Until then it reads no message after the welcome.
  explicit AttachStream(Parts parts, std::optional<std::string> current_relay = std::nullopt);

  // Cancels the stream and waits for its last callback. Not to be called in a callback.
  ~AttachStream() override;

  // Opens the stream. Called once.
  void Start(const OpenParentStream& open);

  // As AttachClient::Send.
  [[nodiscard]] bool Send(v1::AttachRequest message);

  // Reads the next message if AttachDelegate::MayReadNext had prevented that.
  void ResumeReading() ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns whether the delegate was welcomed and the stream has not ended.
  bool welcomed() const;
  // When the delegate was welcomed (monotonic), also after the end.
  std::optional<absl::Duration> welcomed_at() const;
  // URI of the relay that greeted; empty before.
  std::string relay() const;

  // Sends a heartbeat or a new statement when it is due, and ends a silent stream. To be called
  // every tick(). While the delegate takes no messages, no stream counts as silent.
  void Tick();
  // At most a second; less if the relay wants more frequent heartbeats.
  absl::Duration tick() const;

  // Ends the stream soon.
  void End(const absl::Status& why);
  // Returns the reason once the stream has ended.
  std::optional<absl::Status> end() const;

  // Returns whether a relay with an upstream connection has welcomed this candidate, and the stream
  // has not ended.
  bool offered() const;
  // Makes a candidate with an offer the attachment, after the other one has ended: welcomes the
  // delegate and reads on. Has no effect on a candidate that has ended.
  void Adopt();

 private:
  // ParentStreamEvents.
  void OnMessage(v1::AttachResponse message) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnWritable() override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnEnd(const absl::Status& status) override ABSL_LOCKS_EXCLUDED(mutex_);

  void ReadOn() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Handle(v1::AttachResponse message) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status HandleGreeting(v1::AttachResponse::Greeting greeting) ABSL_LOCKS_EXCLUDED(mutex_);
  void HandleOffer(v1::AttachResponse::Welcome offer) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status HandleWelcome(const v1::AttachResponse::Welcome& welcome)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status SendHello() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckOffer(const v1::AttachResponse::Welcome& welcome) const;
  Sent Enqueue(v1::AttachRequest message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Parts parts_;
  const std::string current_relay_;       // of a candidate
  std::unique_ptr<ParentStream> stream_;  // set once, by Start, before the first callback

  mutable Mutex mutex_;
  bool candidate_ ABSL_GUARDED_BY(mutex_);
  // The welcome of a candidate. The callback that sets it does not read on: only Adopt does.
  std::optional<v1::AttachResponse::Welcome> offer_ ABSL_GUARDED_BY(mutex_);
  v1::AttachResponse::Greeting greeting_ ABSL_GUARDED_BY(mutex_);
  int greetings_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<absl::Duration> welcomed_at_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;   // the delegate takes no message for now
  bool refused_ ABSL_GUARDED_BY(mutex_) = false;  // Send returned false since OnWritable
  // A message waits to be sent, so that no heartbeat is needed; OnWritable clears it.
  bool sending_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration interval_ ABSL_GUARDED_BY(mutex_) = absl::Seconds(15);
  absl::Duration received_at_ ABSL_GUARDED_BY(mutex_);  // monotonic, as the next two
  absl::Duration sent_at_ ABSL_GUARDED_BY(mutex_);
  absl::Duration renew_at_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ATTACH_ATTACH_STREAM_H_
