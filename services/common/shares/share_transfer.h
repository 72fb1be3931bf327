// Shared files over ShareService, for who may block: relays to their parents, and nodes to their
// relay.
#ifndef MUSTER_SERVICES_COMMON_SHARES_SHARE_TRANSFER_H_
#define MUSTER_SERVICES_COMMON_SHARES_SHARE_TRANSFER_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/shares.pb.h"
#include "services/common/base/io.h"
#include "services/common/base/mutex.h"

namespace muster {

// Ends calls that block, from another thread. Thread-safe.
class CallStopper {
 public:
  // Cancels every call that runs with it, and each that comes.
  void Stop();

  // While it lives, `context` is cancelled by Stop.
  class Guard {
   public:
    Guard(CallStopper& stopper, grpc::ClientContext& context);
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    CallStopper& stopper_;
    grpc::ClientContext& context_;
  };

 private:
  Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<grpc::ClientContext*> calls_ ABSL_GUARDED_BY(mutex_);
};

// Not thread-safe. Every call has a deadline; a transfer one that lets it run at 64 KiB/s.
class ShareTransfer {
 public:
  // `stopper` outlives it.
  ShareTransfer(const std::shared_ptr<grpc::Channel>& channel, CallStopper& stopper);
  ~ShareTransfer();

  struct Sent {
    bool retain = false;  // OpenShareRequest.only_if_elsewhere
    v1::Share share;    // otherwise
    int64_t bytes = 0;  // that were sent now
  };
  using OpenSource = std::function<absl::StatusOr<std::unique_ptr<ByteSource>>(int64_t offset)>;
  // Tells how many bytes the other side has.
  using Progress = std::function<void(int64_t bytes)>;
  // Sends what is not there yet, reading from where the service says.
  absl::StatusOr<Sent> Send(const v1::SharedFile& file, bool only_if_elsewhere,
                            const OpenSource& open, const Progress& progress = nullptr);

  // The bytes from `offset` on, of exactly this content; each piece's checksum is compared. To be
  // let go of before this object.
  std::unique_ptr<ByteSource> Open(const v1::SharedFile& file, int64_t offset);

  // Operators may name a relay.
  absl::StatusOr<v1::Share> Get(const v1::ShareKey& key, const std::string& relay = "");
  absl::StatusOr<v1::ListSharesResponse> List(const v1::ListSharesRequest& request);
  absl::Status Remove(const v1::ShareKey& key, const std::string& relay = "");
  absl::Status Report(const v1::Share& share);
  absl::Status Answer(const v1::AnswerShareQueryRequest& answer);

 private:
  struct Stub;
  class Reader;

  absl::Status SendFrom(const v1::OpenShareResponse& opened, const v1::SharedFile& file,
                        ByteSource& source, const Progress& progress, Sent* sent);

  const std::unique_ptr<Stub> stub_;
  CallStopper& stopper_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_SHARES_SHARE_TRANSFER_H_
