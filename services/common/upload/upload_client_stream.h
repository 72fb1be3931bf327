// One Upload stream of ResultService, used by a thread that may block.
#ifndef MUSTER_SERVICES_COMMON_UPLOAD_UPLOAD_CLIENT_STREAM_H_
#define MUSTER_SERVICES_COMMON_UPLOAD_UPLOAD_CLIENT_STREAM_H_

#include <grpcpp/channel.h>

#include <cstdint>
#include <memory>
#include <stop_token>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/results.pb.h"
#include "services/common/rpc/client_stream.h"

namespace muster {

// Longer than the server needs to make 8 MiB durable on a busy disk, or to publish a large result.
inline constexpr absl::Duration kUploadStallLimit = absl::Seconds(90);

// Sends the messages of one upload, one at a time, while gRPC's threads receive acknowledgements.
// Each method that waits fails with the status of the stream if the stream ends, with
// NO_PROGRESS if nothing is sent or received for the stall limit, and with INTERRUPTED
// after `stop`. Used by one thread.
class UploadClientStream {
 public:
  // `offset`: the number of bytes that the service already has.
  UploadClientStream(const std::shared_ptr<grpc::Channel>& channel, int64_t offset,
                     std::stop_token stop, absl::Duration stall_limit = kUploadStallLimit);
  UploadClientStream(const UploadClientStream&) = delete;
  UploadClientStream& operator=(const UploadClientStream&) = delete;

  // Cancels the stream if it has not ended, and waits for its end.
  ~UploadClientStream();

  // Passes one message to gRPC, after the previous message was sent. `last`: no message follows.
  absl::Status Send(v1::UploadRequest request, bool last);

  // Waits until at most `window` bytes before `end` are not acknowledged.
  absl::Status AwaitWindow(int64_t end, int64_t window);

  // Waits for the response to `finish`: `committed`, or `spooled`.
  absl::StatusOr<v1::UploadResponse> AwaitEnd();

  // Returns the highest acknowledged offset.
  int64_t acknowledged() const;

 private:
  class Progress;

  const std::shared_ptr<Progress> progress_;
  const StreamOwner<v1::UploadRequest, v1::UploadResponse> stream_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_UPLOAD_UPLOAD_CLIENT_STREAM_H_
