// One stream of a child to a parent, from the greeting to its end.
#ifndef MUSTER_SERVICES_COMMON_ATTACH_ATTACH_STREAM_H_
#define MUSTER_SERVICES_COMMON_ATTACH_ATTACH_STREAM_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/v1/attachment.grpc.pb.h"
#include "services/common/attach/attach_delegate.h"
#include "services/common/base/mutex.h"

namespace muster {

// Its reactions call the delegate; a thread of the owner's ticks it and waits for its end.
// Thread-safe.
class AttachStream : public grpc::ClientBidiReactor<v1::AttachRequest, v1::AttachResponse> {
 public:
  // All outlive it. One that is `aside` is welcomed beside another stream, and says nothing to the
  // delegate before Adopt; `relay_now` is the relay at the other end of that other stream.
  AttachStream(const AttachClientOptions& options, AttachDelegate& delegate, std::string instance);
  AttachStream(const AttachClientOptions& options, AttachDelegate& delegate, std::string instance,
               std::string relay_now);

  // Ends it and waits until gRPC is done with it: the channel must not be let go of by a reaction.
  // The last channel of a process takes the threads along that call reactions (gRPC 1.51), and one
  // of them would wait for itself.
  ~AttachStream() override;

  void Start(const std::shared_ptr<grpc::Channel>& channel);

  // As AttachClient::Send.
  [[nodiscard]] bool Send(v1::AttachRequest message);

  // Whether it stands.
  bool welcomed() const;
  // When the delegate was welcomed (monotonic), also after the end.
  std::optional<absl::Duration> welcomed_at() const;
  // URI of the relay that greeted; empty before.
  std::string relay() const;

  // Says something now and then, renews the statement, notices silence. To be called every tick().
  void Tick();
  // A second, or less if the relay wants to hear more often, or has not said yet how often.
  absl::Duration tick() const;

  void End(const absl::Status& why);
  // Whether it has ended within `wait`; then why.
  std::optional<absl::Status> AwaitEnd(absl::Duration wait);

  // Of one that is aside: whether it was welcomed by a relay that has a way to the centre. Nothing
  // if neither that nor its end came within `wait`.
  std::optional<absl::Status> AwaitOffer(absl::Duration wait);
  // It takes the place of the other stream, which has ended: the delegate is welcomed.
  void Adopt();

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  // What is to be done after a message.
  enum class Then { kRead, kWait };

  absl::Status Take(Then* then) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status TakeGreeting() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status SayHello() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status TakeWelcome(Then* then) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckOffer() const;
  void Queue(v1::AttachRequest message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Write() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const AttachClientOptions& options_;
  AttachDelegate& delegate_;
  const std::string instance_;
  const std::string relay_now_;
  grpc::ClientContext context_;
  std::unique_ptr<v1::AttachService::Stub> stub_;
  v1::AttachResponse response_;

  mutable Mutex mutex_;
  CondVar changed_;
  bool aside_ ABSL_GUARDED_BY(mutex_);
  bool offered_ ABSL_GUARDED_BY(mutex_) = false;  // welcomed, aside; response_ is the welcome
  v1::AttachResponse::Greeting greeting_ ABSL_GUARDED_BY(mutex_);
  // Its first is being written, if writing_.
  std::deque<v1::AttachRequest> queue_ ABSL_GUARDED_BY(mutex_);
  size_t queued_ ABSL_GUARDED_BY(mutex_) = 0;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool refused_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Duration> welcomed_at_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration interval_ ABSL_GUARDED_BY(mutex_) = absl::Seconds(15);
  absl::Duration heard_at_ ABSL_GUARDED_BY(mutex_);  // monotonic, as those that follow
  absl::Duration said_at_ ABSL_GUARDED_BY(mutex_);
  absl::Duration renew_at_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
  std::optional<absl::Status> why_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ATTACH_ATTACH_STREAM_H_
