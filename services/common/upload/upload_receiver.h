// Receives the messages of one upload stream: where a chunk is received and acknowledged.
//
// A chunk passes from the stream to the strand of its upload (upload_session.h), which verifies and
// stores it. Meanwhile the stream may read one more chunk, if the budget that all streams share
// permits. So a stream holds at most one chunk outside of the budget.
#ifndef MUSTER_SERVICES_COMMON_UPLOAD_UPLOAD_RECEIVER_H_
#define MUSTER_SERVICES_COMMON_UPLOAD_UPLOAD_RECEIVER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/results.pb.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/open_streams.h"
#include "services/common/upload/read_ahead_budget.h"
#include "services/common/upload/upload_session.h"

namespace muster {

// The stream that a receiver serves. Its methods do not block, do not call the receiver, and have
// no effect after the end of the stream. Thread-safe, but for FindSession.
class UploadConnection {
 public:
  virtual ~UploadConnection() = default;

  // Returns the upload that the first message names, if the peer may deliver it. Called once, by
  // UploadReceiver::Receive.
  virtual absl::StatusOr<std::shared_ptr<UploadSession>> FindSession(
      const v1::UploadRequest::Start& start) = 0;

  // The peer whose stream this is.
  virtual UploadPeer Peer() const = 0;

  // Counts the stream, which is about to be attached (UploadSession::Attach); RESOURCE_EXHAUSTED at
  // a limit.
  virtual absl::StatusOr<UploadTicket> Count() = 0;

  // Reads one more message: UploadReceiver::Receive or HalfClosed follows.
  virtual void ReadNext() = 0;

  // Sends an acknowledgement. Returns false if the previous one is still being sent:
  // UploadReceiver::SendDue follows.
  virtual bool SendAck(const UploadAck& ack) = 0;

  // Ends the stream: with the committed result, or with an error. The first call counts.
  virtual void EndCommitted(UploadSession& session, ResultRecord result) = 0;
  virtual void End(const absl::Status& status) = 0;
};

// The callbacks of the stream (Receive, HalfClosed, SendDue, Ended) never overlap; Ended is the
// last. Tasks on the strand of the session keep the receiver alive.
class UploadReceiver : public std::enable_shared_from_this<UploadReceiver> {
 public:
  UploadReceiver(std::shared_ptr<UploadConnection> connection, ReadAheadBudget& budget)
      : connection_(std::move(connection)), budget_(budget) {}

  // Asks for the first message.
  void Begin() { connection_->ReadNext(); }

  // Handles one message.
  void Receive(v1::UploadRequest request) ABSL_LOCKS_EXCLUDED(mutex_);

  // The peer sends nothing more, or sent bytes that are no message. Without a finish the stream
  // ends with NO_READABLE_MESSAGE, and the upload stays open.
  void HalfClosed() ABSL_LOCKS_EXCLUDED(mutex_);

  // Sends the newest acknowledgement, if one is due.
  void SendDue() ABSL_LOCKS_EXCLUDED(mutex_);

  // The stream has ended: detaches it.
  void Ended();

 private:
  void ReceiveStart(const v1::UploadRequest::Start& start);
  void ReceiveChunk(v1::UploadRequest::Chunk* chunk) ABSL_LOCKS_EXCLUDED(mutex_);
  void ReceiveFinish(const v1::UploadRequest::Finish& finish) ABSL_LOCKS_EXCLUDED(mutex_);

  // On the session's strand.
  void Attach(UploadSession& session, int64_t epoch);
  void HandleStored(const absl::StatusOr<UploadAck>& ack, int64_t bytes, bool reserved)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Reads the next message if none is being read and there is memory for it.
  void ReadMore() ABSL_LOCKS_EXCLUDED(mutex_);
  void SetRead() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::shared_ptr<UploadConnection> connection_;
  ReadAheadBudget& budget_;

  // Used by the callbacks.
  std::shared_ptr<UploadSession> session_;  // after the first message
  bool finished_ = false;

  // Used on the session's strand.
  UploadAttachment attachment_;

  Mutex mutex_;
  // A message was asked for, and is not handed to the strand yet.
  bool reading_ ABSL_GUARDED_BY(mutex_) = true;
  // Nothing is read after the finish.
  bool reads_closed_ ABSL_GUARDED_BY(mutex_) = false;
  // Chunks on the strand, and those of them for which the budget had no bytes left.
  int storing_ ABSL_GUARDED_BY(mutex_) = 0;
  int unreserved_ ABSL_GUARDED_BY(mutex_) = 0;
  // `written` of the last acknowledgement that was sent, and the newest unsent acknowledgement.
  int64_t acked_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<UploadAck> ack_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_UPLOAD_UPLOAD_RECEIVER_H_
