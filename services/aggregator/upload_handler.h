// The stream that carries an upload: where a chunk is received and answered.
//
// A chunk is read on gRPC's threads, handed to the session's strand (upload_session.h), and
// acknowledged from there. While one chunk is stored the next may be read: the bytes in our hands
// are bounded by one chunk for each stream, and for the second one by a budget that all share.
#ifndef MUSTER_SERVICES_AGGREGATOR_UPLOAD_HANDLER_H_
#define MUSTER_SERVICES_AGGREGATOR_UPLOAD_HANDLER_H_

#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "muster/v1/results.pb.h"
#include "services/aggregator/uploads/uploads.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/call.h"

namespace muster {

// Bytes that streams may hold beyond one chunk each. Thread-safe.
class ReadAheadBudget {
 public:
  explicit ReadAheadBudget(int64_t bytes) : left_(bytes) {}

  bool TryTake(int64_t bytes) {
    if (left_.fetch_sub(bytes) >= bytes) return true;
    left_ += bytes;
    return false;
  }
  void Return(int64_t bytes) { left_ += bytes; }

 private:
  std::atomic<int64_t> left_;
};

// Deletes itself when gRPC and the strand are both done with it.
class UploadHandler : public grpc::ServerBidiReactor<v1::UploadRequest, v1::UploadResponse>,
                      public std::enable_shared_from_this<UploadHandler> {
 public:
  static UploadHandler* Start(const RpcRuntime& runtime, grpc::CallbackServerContext* context,
                              Uploads& uploads, ReadAheadBudget& budget);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  UploadHandler(const RpcRuntime& runtime, grpc::CallbackServerContext* context, Uploads& uploads,
                ReadAheadBudget& budget);

  void Begin(const v1::UploadRequest::Start& start);
  absl::Status AttachTo(const v1::UploadRequest::Start& start);
  void Attach(UploadSession& session, int64_t epoch);
  std::shared_ptr<UploadSession> Session() const ABSL_LOCKS_EXCLUDED(mutex_);
  void TakeChunk(v1::UploadRequest::Chunk* chunk) ABSL_LOCKS_EXCLUDED(mutex_);
  void ChunkDone(const absl::StatusOr<UploadAck>& ack, int64_t bytes, bool ahead)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void TakeFinish(const v1::UploadRequest::Finish& finish) ABSL_LOCKS_EXCLUDED(mutex_);
  void Committed(absl::StatusOr<ResultRecord> result) ABSL_LOCKS_EXCLUDED(mutex_);
  void MessageTaken() ABSL_LOCKS_EXCLUDED(mutex_);
  void ReadMore() ABSL_LOCKS_EXCLUDED(mutex_);
  void SendAck() ABSL_LOCKS_EXCLUDED(mutex_);
  void End(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  const RpcRuntime runtime_;
  Uploads& uploads_;
  ReadAheadBudget& budget_;
  Call call_;
  std::shared_ptr<UploadHandler> self_;  // until OnDone
  UploadAttachment attachment_;          // of the session's strand alone
  v1::UploadRequest request_;
  v1::UploadResponse response_;

  mutable Mutex mutex_;
  // Set when its attach has been posted to its strand.
  std::shared_ptr<UploadSession> session_ ABSL_GUARDED_BY(mutex_);
  // gRPC is done with the call: nothing may be attached.
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  int storing_ ABSL_GUARDED_BY(mutex_) = 0;         // chunks on the strand
  int unpaid_ ABSL_GUARDED_BY(mutex_) = 0;          // those of them that the budget had no room for
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;    // a StartRead is out, or request_ is in use
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;    // a StartWrite is out
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;  // finish came: nothing may follow
  bool counted_ ABSL_GUARDED_BY(mutex_) = false;    // among the streams of uploads_
  int64_t acked_ ABSL_GUARDED_BY(mutex_) = 0;       // `written` of the last acknowledgement
  std::optional<UploadAck> ack_ ABSL_GUARDED_BY(mutex_);  // the newest that has not been sent
  std::optional<ResultRecord> committed_ ABSL_GUARDED_BY(mutex_);  // to be sent as the last message
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);  // to end with once no write is out
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_UPLOAD_HANDLER_H_
