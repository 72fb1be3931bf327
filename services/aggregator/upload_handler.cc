#include "services/aggregator/upload_handler.h"

#include <utility>

#include "services/aggregator/convert.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"

namespace muster {
namespace {

class Connection final : public UploadConnection {
 public:
  Connection(std::shared_ptr<ServerStream<v1::UploadResponse>> stream, Uploads& uploads)
      : stream_(std::move(stream)), call_entry_(stream_->call().Hold()), uploads_(uploads) {}

  // A caller without the right to the upload does not learn whether it exists.
  absl::StatusOr<std::shared_ptr<UploadSession>> FindSession(
      const v1::UploadRequest::Start& start) override {
    Call& call = stream_->call();
    auto session = uploads_.Find(start.upload_id());
    if (!session.ok()) {
      RETURN_IF_ERROR(call.Authorize(OwnPair(call.caller())));
      return session.status();
    }
    const ResultKey& key = (*session)->key();
    RETURN_IF_ERROR(call.Authorize(Resource::Pair(key.run, key.plugin, key.node)));
    run_ = key.run;
    return session;
  }

  UploadPeer Peer() const override { return PeerOf(stream_->call().caller()); }

  absl::StatusOr<UploadTicket> Count() override {
    return uploads_.quota().CountStream(stream_->call().caller().identity, run_);
  }

  void ReadNext() override { stream_->ReadNext(); }

  bool SendAck(const UploadAck& ack) override {
    v1::UploadResponse response;
    response.mutable_ack()->set_written(ack.written);
    response.mutable_ack()->set_durable(ack.durable);
    return stream_->Send(std::move(response)) != Sent::kFull;
  }

  void EndCommitted(UploadSession& session, ResultRecord result) override {
    uploads_.Forget(session.id());
    const auto closed = session.shared_from_this();
    if (!session.strand().Post([closed] { closed->Close(); })) {
      Log(LogLevel::kWarning, "staged bytes stay until the next start", {{"upload", session.id()}});
    }
    v1::UploadResponse response;
    *response.mutable_committed() = ToProto(result);
    stream_->SendAndEnd(std::move(response));
  }

  void End(const absl::Status& status) override { stream_->End(status); }

 private:
  const std::shared_ptr<ServerStream<v1::UploadResponse>> stream_;
  // Tasks on the strand and the commit use `uploads_` after the end of the stream.
  const CallCanceller::Handle call_entry_;
  Uploads& uploads_;
  std::string run_;  // of the upload that the first message names
};

}  // namespace

grpc::ServerBidiReactor<v1::UploadRequest, v1::UploadResponse>* UploadHandler::Start(
    const RpcRuntime& runtime, grpc::CallbackServerContext* context, Uploads& uploads,
    ReadAheadBudget& budget) {
  ServerStreamOptions options;
  options.counted = false;  // UploadConnection::Count
  return StartServerStream<v1::UploadRequest, v1::UploadResponse>(
      runtime, context, kUploadMethod, options, std::make_shared<UploadHandler>(uploads, budget));
}

void UploadHandler::OnStart(const std::shared_ptr<ServerStream<v1::UploadResponse>>& stream) {
  receiver_ =
      std::make_shared<UploadReceiver>(std::make_shared<Connection>(stream, uploads_), budget_);
  receiver_->Begin();
}

void UploadHandler::OnMessage(v1::UploadRequest request) { receiver_->Receive(std::move(request)); }

}  // namespace muster
