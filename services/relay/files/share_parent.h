// The parent of this relay, as the router of shared files uses it.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_PARENT_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_PARENT_H_

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/shares.pb.h"
#include "services/common/base/io.h"
#include "services/common/base/mutex.h"
#include "services/common/shares/share_transfer.h"
#include "services/relay/files/share_parts.h"

namespace muster {

// Calls of ShareService that wait for the answer. UNAVAILABLE without a parent. Thread-safe.
class ShareParent {
 public:
  virtual ~ShareParent() = default;

  // Returns a number that changes with the connection; 0 if there is none. Does not wait.
  virtual uint64_t connection() = 0;
  bool connected() { return connection() != 0; }

  virtual absl::StatusOr<ShareTransfer::Sent> Send(const v1::SharedFile& file,
                                                   bool only_if_elsewhere,
                                                   const ShareTransfer::OpenSource& open) = 0;
  virtual absl::Status Report(const v1::Share& share) = 0;

  // Reads a file from `offset` to its end, in pieces; stops at the first error of `sink`.
  using Sink = absl::FunctionRef<absl::Status(std::string_view piece)>;
  virtual absl::Status Read(const v1::SharedFile& file, int64_t offset, Sink sink) = 0;

  // Cancels the calls in progress and all later ones.
  virtual void Stop() = 0;
};

// The parent at the other end of a channel.
class RemoteShareParent : public ShareParent {
 public:
  // `peers` outlives it.
  explicit RemoteShareParent(SharePeers& peers) : peers_(peers) {}

  uint64_t connection() override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<ShareTransfer::Sent> Send(const v1::SharedFile& file, bool only_if_elsewhere,
                                           const ShareTransfer::OpenSource& open) override;
  absl::Status Report(const v1::Share& share) override;
  absl::Status Read(const v1::SharedFile& file, int64_t offset, Sink sink) override;
  void Stop() override { stopper_.Stop(); }

 private:
  SharePeers& peers_;
  CallStopper stopper_;
  Mutex mutex_;
  std::weak_ptr<grpc::Channel> last_ ABSL_GUARDED_BY(mutex_);
  uint64_t connections_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_PARENT_H_
