// An upload that is taken into the spool.
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

// One chunk at a time: the next one is read when the one before is stored.
class UploadIntoSpool : public MessageSink, public std::enable_shared_from_this<UploadIntoSpool> {
 public:
  // `peer`: whose stream it is. `node`: whose upload it has to be. UPLOAD_NOT_FOUND.
  static absl::StatusOr<std::shared_ptr<MessageSink>> Start(std::shared_ptr<DownstreamStream> below,
                                                            Spool& spool,
                                                            const v1::UploadRequest::Start& start,
                                                            UploadPeer peer,
                                                            const std::string& node);

  void Take(grpc::ByteBuffer message) override;
  void HalfClosed() override;
  void Sent() override;
  void Over() override;

 private:
  UploadIntoSpool(std::shared_ptr<DownstreamStream> below, Spool& spool,
                  const v1::UploadRequest::Start& start, UploadPeer peer,
                  std::shared_ptr<UploadSession> session)
      : below_(std::move(below)),
        spool_(spool),
        id_(start.upload_id()),
        epoch_(start.epoch()),
        peer_(std::move(peer)),
        session_(std::move(session)) {}

  void Attach();
  void TakeChunk(v1::UploadRequest::Chunk* chunk);
  void TakeFinish(const v1::UploadRequest::Finish& finish);
  void Acknowledge(const UploadAck& ack) ABSL_LOCKS_EXCLUDED(mutex_);
  v1::UploadResponse TakeAck() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Spooled();

  const std::shared_ptr<DownstreamStream> below_;
  Spool& spool_;
  const std::string id_;
  const int64_t epoch_;
  const UploadPeer peer_;
  const std::shared_ptr<UploadSession> session_;  // null: the result is complete already
  UploadAttachment attachment_;                   // of the session's strand alone

  Mutex mutex_;
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;
  bool sending_ ABSL_GUARDED_BY(mutex_) = false;          // an acknowledgement is on its way
  std::optional<UploadAck> ack_ ABSL_GUARDED_BY(mutex_);  // the newest that has not been sent
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_UPLOAD_INTO_SPOOL_H_
