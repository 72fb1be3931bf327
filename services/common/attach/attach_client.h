// The child's side of attachment: how a node, or a relay below a relay, hangs in the tree.
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
#include "services/common/base/mutex.h"

namespace muster {

class AttachStream;

// Keeps one stream to one of the parents, for as long as it lives. From another parent than the
// first it goes back to an earlier one, when that welcomes it and has a way to the centre: the new
// stream stands before the old one ends, and the delegate is told of a loss and a welcome.
// Thread-safe.
class AttachClient {
 public:
  // `delegate` outlives it.
  AttachClient(AttachClientOptions options, AttachDelegate& delegate);
  // Begins to attach. Once.
  void Start();
  // Ends the stream; after that the delegate is not called.
  ~AttachClient();

  AttachClient(const AttachClient&) = delete;
  AttachClient& operator=(const AttachClient&) = delete;

  // Queues a message for the parent. False if it is not attached, or if too much is queued:
  // OnWritable tells when to try again, OnWelcome when to begin anew.
  [[nodiscard]] bool Send(v1::AttachRequest message);

  // Whether a welcomed stream stands.
  bool attached() const;
  // The address and the channel of the parent that it is attached to, or was last; empty and null
  // before the first.
  std::string target() const;
  std::shared_ptr<grpc::Channel> channel() const;

 private:
  struct Parent {
    size_t index = 0;  // in targets
    std::string target;
    std::shared_ptr<grpc::Channel> channel;
    std::shared_ptr<AttachStream> stream;
  };

  Parent Newest() const ABSL_LOCKS_EXCLUDED(mutex_);
  void Run(const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Hold(const std::stop_token& stop, Parent& parent);
  Parent Reach(size_t index) const;
  absl::Duration NextLook() const;
  Parent FindEarlier(const std::stop_token& stop, AttachStream& now, size_t index) const;
  void SetParent(const Parent& parent) ABSL_LOCKS_EXCLUDED(mutex_);

  const AttachClientOptions options_;
  AttachDelegate& delegate_;
  const std::string instance_;
  mutable Mutex mutex_;
  StoppableCondVar changed_;
  std::shared_ptr<AttachStream> stream_ ABSL_GUARDED_BY(mutex_);
  Parent trying_ ABSL_GUARDED_BY(mutex_);
  mutable Parent parent_ ABSL_GUARDED_BY(mutex_);  // that which welcomed last
  std::jthread thread_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ATTACH_ATTACH_CLIENT_H_
