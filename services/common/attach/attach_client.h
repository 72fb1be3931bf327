// The child's side of attachment: how a node or a relay attaches to a parent relay.
#ifndef MUSTER_SERVICES_COMMON_ATTACH_ATTACH_CLIENT_H_
#define MUSTER_SERVICES_COMMON_ATTACH_ATTACH_CLIENT_H_

#include <grpcpp/channel.h>

#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/v1/attachment.pb.h"
#include "services/common/attach/attach_delegate.h"
#include "services/common/attach/attach_stream.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"

namespace muster {

// Keeps this child attached to one of the parents. While the child is attached to a less-preferred
// parent, the client probes the preferred ones, and attaches to one that welcomes the child and has
// an upstream connection: the new stream is welcomed before the old one ends, and the delegate sees
// a loss and a welcome. Thread-safe.
class AttachClient {
 public:
  // `delegate` outlives it.
  AttachClient(AttachClientOptions options, AttachDelegate& delegate);
  // Begins to attach. Called once.
  void Start();
  // Ends the stream; after that the delegate is not called.
  ~AttachClient();

  AttachClient(const AttachClient&) = delete;
  AttachClient& operator=(const AttachClient&) = delete;

  // Enqueues a message for the parent. Returns false if this child is not attached, or if the queue
  // is full: OnWritable tells when to try again, OnWelcome when to start over.
  [[nodiscard]] bool Send(v1::AttachRequest message);

  // Returns whether this child is attached.
  bool attached() const;
  // Address and channel of the current or last parent; empty and null before the first.
  std::string target() const;
  std::shared_ptr<grpc::Channel> channel() const;

 private:
  struct Parent {
    size_t index = 0;  // in targets
    std::string target;
    std::shared_ptr<grpc::Channel> channel;
    std::shared_ptr<AttachStream> stream;
  };

  Parent LastParent() const ABSL_LOCKS_EXCLUDED(mutex_);
  void Run(const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status StayAttached(const std::stop_token& stop, Parent& parent);
  Parent MakeParent(size_t index) const;
  AttachStream::Parts StreamParts() const;
  absl::Duration NextProbe() const;
  Parent FindPreferred(const std::stop_token& stop, AttachStream& current, size_t index) const;
  void SetParent(const Parent& parent) ABSL_LOCKS_EXCLUDED(mutex_);

  const AttachClientOptions options_;
  AttachDelegate& delegate_;
  const Clock& clock_ = SystemClock();
  const std::string instance_;
  mutable Mutex mutex_;
  StoppableCondVar changed_;
  std::shared_ptr<AttachStream> stream_ ABSL_GUARDED_BY(mutex_);
  Parent trying_ ABSL_GUARDED_BY(mutex_);
  mutable Parent parent_ ABSL_GUARDED_BY(mutex_);  // that sent the last welcome
  std::jthread thread_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ATTACH_ATTACH_CLIENT_H_
