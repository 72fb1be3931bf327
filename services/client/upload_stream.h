// One Upload stream of ResultService, driven from a thread that may block.
#ifndef MUSTER_SERVICES_CLIENT_UPLOAD_STREAM_H_
#define MUSTER_SERVICES_CLIENT_UPLOAD_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/results.grpc.pb.h"

namespace muster::client {

// The caller sends while gRPC's threads note what comes back. Used by one thread.
class UploadStream final : private grpc::ClientBidiReactor<v1::UploadRequest, v1::UploadResponse> {
 public:
  // `offset`: what the service has already.
  UploadStream(v1::ResultService::Stub& stub, int64_t offset, std::stop_token stop);

  // Cancels what still runs, and waits for its end.
  ~UploadStream() override;

  // Hands one message to gRPC, after the one before was taken. `last`: nothing follows. An error if
  // the stream is over, nothing moved for 90 s, or on `stop`.
  absl::Status Send(v1::UploadRequest request, bool last);

  // Waits until at most `window` bytes before `end` are not acknowledged.
  absl::Status AwaitRoom(int64_t end, int64_t window);

  // Waits for the answer to `finish`: `committed`, or `spooled`.
  absl::StatusOr<v1::UploadResponse> AwaitEnd();

  // The highest acknowledged offset.
  int64_t acknowledged() const;

 private:
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  // Waits for `ready`; the stream's own error if it ends first.
  absl::Status Await(std::unique_lock<std::mutex>& lock, absl::FunctionRef<bool()> ready);

  const std::stop_token stop_;
  grpc::ClientContext context_;
  v1::UploadRequest request_;    // of the write under way
  v1::UploadResponse response_;  // of the read under way
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  bool writing_ = false;                   // guarded by mutex_
  bool reads_ended_ = false;               // guarded by mutex_: no operation may be started
  bool done_ = false;                      // guarded by mutex_
  uint64_t events_ = 0;                    // guarded by mutex_: how often something moved
  int64_t acknowledged_;                   // guarded by mutex_
  absl::Status status_;                    // guarded by mutex_; of the ended stream
  std::optional<v1::UploadResponse> end_;  // guarded by mutex_
};

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_UPLOAD_STREAM_H_
