// An upload that is stored in the spool.
#ifndef MUSTER_SERVICES_RELAY_PROXY_UPLOAD_INTO_SPOOL_H_
#define MUSTER_SERVICES_RELAY_PROXY_UPLOAD_INTO_SPOOL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "services/common/base/mutex.h"
#include "services/common/upload/upload_session.h"
#include "services/relay/proxy/downstream_stream.h"
#include "services/relay/spool/spool.h"

namespace muster {

// The next chunk is read when the previous one is stored.
class UploadIntoSpool : public MessageSink, public std::enable_shared_from_this<UploadIntoSpool> {
 public:
  // `peer`: the owner of the stream. `node`: the expected owner of the upload. UPLOAD_NOT_FOUND.
  static absl::StatusOr<std::shared_ptr<MessageSink>> Start(
      std::shared_ptr<DownstreamStream> downstream, Spool& spool,
      const v1::UploadRequest::Start& start, UploadPeer peer, const std::string& node);

  void HandleMessage(grpc::ByteBuffer message) override;
  void HandleHalfClose() override;
  void HandleSent() override;
  void HandleEnd() override;

 private:
  UploadIntoSpool(std::shared_ptr<DownstreamStream> downstream, Spool& spool,
                  const v1::UploadRequest::Start& start, UploadPeer peer,
                  std::shared_ptr<UploadSession> session)
      : downstream_(std::move(downstream)),
        spool_(spool),
        id_(start.upload_id()),
        epoch_(start.epoch()),
        peer_(std::move(peer)),
        session_(std::move(session)) {}

  void Attach();
  void HandleChunk(v1::UploadRequest::Chunk* chunk);
  void HandleFinish(const v1::UploadRequest::Finish& finish);
  void Acknowledge(const UploadAck& ack) ABSL_LOCKS_EXCLUDED(mutex_);
  v1::UploadResponse DequeueAck() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReplySpooled();

  const std::shared_ptr<DownstreamStream> downstream_;
  Spool& spool_;
  const std::string id_;
  const int64_t epoch_;
  const UploadPeer peer_;
  const std::shared_ptr<UploadSession> session_;  // null: the result is complete
  UploadAttachment attachment_;                   // of the session's strand

  Mutex mutex_;
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;
  bool sending_ ABSL_GUARDED_BY(mutex_) = false;          // an ack is being sent
  std::optional<UploadAck> ack_ ABSL_GUARDED_BY(mutex_);  // the newest unsent one
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_UPLOAD_INTO_SPOOL_H_
