#include "services/relay/proxy/upload_into_spool.h"

#include <utility>

#include "services/common/base/status_macros.h"
#include "services/common/errors/results.h"
#include "services/common/errors/rpc.h"
#include "services/common/upload/upload_receiver.h"

namespace muster {
namespace {

void ReplySpooled(DownstreamStream& downstream, const Spool& spool, const std::string& id) {
  const auto spooled = spool.Receipt(id);
  // The spool may have just delivered it: the sender opens it again and receives COMMITTED.
  if (!spooled) return downstream.End(errors::UploadNotFound(id));
  v1::UploadResponse response;
  *response.mutable_spooled() = *spooled;
  downstream.End(absl::OkStatus(), Serialize(response));
}

class SpoolConnection final : public UploadConnection {
 public:
  SpoolConnection(SpoolStream stream, Spool& spool) : stream_(std::move(stream)), spool_(spool) {}

  absl::StatusOr<std::shared_ptr<UploadSession>> FindSession(
      const v1::UploadRequest::Start& start) override {
    return spool_.Find(start.upload_id(), stream_.node);
  }
  UploadPeer Peer() const override { return stream_.peer; }
  absl::StatusOr<UploadTicket> Count() override {
    UploadTicket ticket;
    ASSIGN_OR_RETURN(ticket.of_caller, stream_.count());
    return ticket;
  }
  void ReadNext() override { stream_.downstream->ReadNext(); }

  bool SendAck(const UploadAck& ack) override {
    v1::UploadResponse response;
    response.mutable_ack()->set_written(ack.written);
    response.mutable_ack()->set_durable(ack.durable);
    return stream_.downstream->Send(Serialize(response)) != Sent::kFull;
  }

  void EndCommitted(UploadSession& session, ResultRecord) override {
    ReplySpooled(*stream_.downstream, spool_, session.id());
  }
  void End(const absl::Status& status) override { stream_.downstream->End(status); }

 private:
  const SpoolStream stream_;
  Spool& spool_;
};

// Passes the messages of a stream to its receiver.
class ReceivingSink final : public MessageSink {
 public:
  ReceivingSink(std::shared_ptr<DownstreamStream> downstream,
                std::shared_ptr<UploadReceiver> receiver)
      : downstream_(std::move(downstream)), receiver_(std::move(receiver)) {}

  void HandleMessage(grpc::ByteBuffer message) override {
    v1::UploadRequest request;
    if (!Parse(message, &request)) return downstream_->End(errors::NoReadableMessage());
    receiver_->Receive(std::move(request));
  }
  void HandleHalfClose() override { receiver_->HalfClosed(); }
  void HandleSent() override { receiver_->SendDue(); }
  void HandleEnd() override { receiver_->Ended(); }

 private:
  const std::shared_ptr<DownstreamStream> downstream_;
  const std::shared_ptr<UploadReceiver> receiver_;
};

// The stream of an upload that is complete already: it has no session.
class CompleteSink final : public MessageSink {
 public:
  CompleteSink(std::shared_ptr<DownstreamStream> downstream, const Spool& spool, std::string id,
               OpenStreams::Ticket counted)
      : downstream_(std::move(downstream)),
        spool_(spool),
        id_(std::move(id)),
        counted_(std::move(counted)) {}

  void HandleMessage(grpc::ByteBuffer message) override {
    v1::UploadRequest request;
    if (Parse(message, &request) && request.has_start()) return downstream_->ReadNext();
    if (request.has_finish()) return ReplySpooled(*downstream_, spool_, id_);
    downstream_->End(errors::InvalidChunk("the upload is already complete"));
  }
  void HandleHalfClose() override { downstream_->End(errors::NoReadableMessage()); }
  void HandleSent() override {}
  void HandleEnd() override {}

 private:
  const std::shared_ptr<DownstreamStream> downstream_;
  const Spool& spool_;
  const std::string id_;
  const OpenStreams::Ticket counted_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<MessageSink>> UploadIntoSpool(const std::string& id,
                                                             SpoolStream stream, Spool& spool,
                                                             ReadAheadBudget& budget) {
  auto downstream = stream.downstream;
  if (spool.IsComplete(id, stream.node)) {
    ASSIGN_OR_RETURN(auto counted, stream.count());
    return std::make_shared<CompleteSink>(std::move(downstream), spool, id, std::move(counted));
  }
  auto receiver = std::make_shared<UploadReceiver>(
      std::make_shared<SpoolConnection>(std::move(stream), spool), budget);
  return std::make_shared<ReceivingSink>(std::move(downstream), std::move(receiver));
}

}  // namespace muster
