// A blocking client of ShareService, for relays towards their parents and for nodes.
#ifndef MUSTER_SERVICES_COMMON_SHARES_SHARE_TRANSFER_H_
#define MUSTER_SERVICES_COMMON_SHARES_SHARE_TRANSFER_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/shares.pb.h"
#include "services/common/base/io.h"
#include "services/common/base/mutex.h"

namespace muster {

// Cancels blocking calls from another thread. Thread-safe.
class CallStopper {
 public:
  // Cancels the calls in progress and all later ones.
  void Stop();

  // During its lifetime, Stop cancels `context`.
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

// Not thread-safe. Every call has a deadline; that of a transfer permits 64 KiB/s.
class ShareTransfer {
 public:
  // `stopper` outlives it.
  ShareTransfer(const std::shared_ptr<grpc::Channel>& channel, CallStopper& stopper);
  ~ShareTransfer();

  struct Sent {
    bool retain = false;  // OpenShareRequest.only_if_elsewhere
    v1::Share share;      // otherwise
    int64_t bytes = 0;    // sent by this call
  };
  using OpenSource = std::function<absl::StatusOr<std::unique_ptr<ByteSource>>(int64_t offset)>;
  // Receives the number of bytes that the service has.
  using Progress = std::function<void(int64_t bytes)>;
  // Sends the bytes that the service does not have, from the offset in its answer.
  absl::StatusOr<Sent> Send(const v1::SharedFile& file, bool only_if_elsewhere,
                            const OpenSource& open, const Progress& progress = nullptr);

  // Returns the bytes of exactly this content from `offset` on, with verified checksums. Destroy
  // the source before this object.
  std::unique_ptr<ByteSource> Open(const v1::SharedFile& file, int64_t offset);

  // Operators may name a relay.
  absl::StatusOr<v1::Share> Get(const v1::ShareKey& key, const std::string& relay = "");
  absl::StatusOr<v1::ListSharesResponse> List(const v1::ListSharesRequest& request);
  // Passes all pages from `request` on to `handle`. INTERNAL (ENDLESS_SHARE_LIST) if a page refers
  // to an earlier one, or if there are more than 256 MiB: relays of other networks make pages.
  absl::Status ListAll(v1::ListSharesRequest request,
                       absl::FunctionRef<void(v1::ListSharesResponse)> handle);
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
