// One Upload stream of ResultService, driven from a thread that may block.
#ifndef MUSTER_SERVICES_COMMON_UPLOAD_UPLOAD_STREAM_H_
#define MUSTER_SERVICES_COMMON_UPLOAD_UPLOAD_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <optional>
#include <stop_token>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/results.grpc.pb.h"
#include "services/common/base/mutex.h"

namespace muster {

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
  void OnReadDone(bool ok) ABSL_LOCKS_EXCLUDED(mutex_) override;
  void OnWriteDone(bool ok) ABSL_LOCKS_EXCLUDED(mutex_) override;
  void OnDone(const grpc::Status& status) ABSL_LOCKS_EXCLUDED(mutex_) override;

  // Waits for `ready`; the stream's own error if it ends first.
  absl::Status Await(absl::FunctionRef<bool()> ready) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::stop_token stop_;
  grpc::ClientContext context_;
  v1::UploadRequest request_;    // of the write in progress
  v1::UploadResponse response_;  // of the read in progress
  mutable Mutex mutex_;
  StoppableCondVar changed_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool reads_ended_ ABSL_GUARDED_BY(mutex_) = false;  // no operation may be started
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t events_ ABSL_GUARDED_BY(mutex_) = 0;  // how often something moved
  int64_t acknowledged_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);  // of the ended stream
  std::optional<v1::UploadResponse> end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_UPLOAD_UPLOAD_STREAM_H_
