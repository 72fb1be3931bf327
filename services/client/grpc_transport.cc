#include "services/client/grpc_transport.h"

#include <grpcpp/channel.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "muster/v1/results.grpc.pb.h"
#include "services/client/chunk_compressor.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/client.h"
#include "services/common/errors/results.h"
#include "services/common/rpc/renewed_channel.h"
#include "services/common/rpc/status.h"
#include "services/common/rpc/stoppable_context.h"
#include "services/common/upload/upload_client_stream.h"

namespace muster::client {
namespace {

constexpr int64_t kSubmitMax = 64 * 1024;        // the limit of SubmitResult
constexpr int64_t kChunkMost = 4 * 1024 * 1024;  // whatever a server announces, as the next
constexpr int64_t kChunkLeast = 4 * 1024;

void Describe(const ResultInfo& info, v1::ResultDescription* description) {
  description->mutable_key()->set_run(info.run);
  description->mutable_key()->set_plugin(info.plugin);
  description->mutable_key()->set_node(info.node);
  description->set_attempt(info.attempt);
  description->set_is_error(info.is_error);
  description->set_media_type(info.media_type);
  description->set_file_name(info.file_name);
}

CommitReceipt ReceiptOf(const v1::Result& result) {
  return {result.generation(), result.size(), result.sha256()};
}

// The time-out of a unary call says nothing about the result, so the delivery may retry.
absl::Status FromUnary(const grpc::Status& status, const std::stop_token& stop) {
  if (stop.stop_requested() && status.error_code() == grpc::StatusCode::CANCELLED) {
    return errors::Interrupted();
  }
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return errors::StreamBroken("no response within a minute");
  }
  return FromGrpc(status);
}

class GrpcTransport final : public ResultTransport {
 public:
  GrpcTransport(const std::vector<std::string>& targets, std::shared_ptr<const Sender> sender)
      : sender_(std::move(sender)) {
    const auto credentials = sender_->Credentials({ServiceRole::kAggregator, ServiceRole::kRelay});
    for (const std::string& target : targets) channels_.emplace_back(target, credentials);
  }

  TryOutcome Try(OutgoingResult& result, const std::stop_token& stop) override {
    RenewedChannel& target = channels_[current_];
    channel_ = target.Get();
    stub_ = v1::ResultService::NewStub(channel_);
    TryOutcome outcome;
    outcome.receipt =
        result.file->size() <= kSubmitMax ? Submit(result, stop) : Upload(result, stop, &outcome);
    // A relay without an upstream connection accepts only uploads.
    if (ReasonOf(outcome.receipt.status()) == "RELAY_CUT_OFF" && !outcome.opened) {
      outcome.receipt = Upload(result, stop, &outcome);
    }
    const absl::StatusCode code = outcome.receipt.status().code();
    if (code == absl::StatusCode::kUnavailable || code == absl::StatusCode::kResourceExhausted) {
      current_ = (current_ + 1) % channels_.size();
    }
    stub_.reset();
    channel_.reset();
    target.RenewIfBroken();
    return outcome;
  }

 private:
  absl::Status Sign(const OutgoingResult& result, v1::Signature* signature) const {
    ASSIGN_OR_RETURN(const auto identity, sender_->Identity());
    ASSIGN_OR_RETURN(auto value,
                     identity.Sign(result.info, result.file->size(), result.digest.Sha256()));
    signature->set_value(std::move(value));
    signature->set_certificate_chain_pem(identity.chain_pem());
    return absl::OkStatus();
  }

  absl::StatusOr<CommitReceipt> Submit(OutgoingResult& result, const std::stop_token& stop) {
    v1::SubmitResultRequest request;
    Describe(result.info, request.mutable_description());
    std::string& body = *request.mutable_body();
    body.resize(static_cast<size_t>(result.file->size()));
    RETURN_IF_ERROR(result.file->ReadAt(0, body));
    RETURN_IF_ERROR(result.file->CheckUnchanged());
    result.digest.Add(0, body);
    request.set_crc32c(Crc32c(body));
    request.set_sha256(result.digest.Sha256());
    RETURN_IF_ERROR(Sign(result, request.mutable_signature()));
    StoppableContext context(stop);
    v1::Result answer;
    const grpc::Status status = stub_->SubmitResult(context.get(), request, &answer);
    if (!status.ok()) return FromUnary(status, stop);
    return CheckCommitted(result, answer);
  }

  // Opens the upload. A sealed run accepts only the digest of the result that it has: this one, if
  // an earlier process delivered it and was killed before it knew.
  absl::StatusOr<v1::OpenUploadResponse> Open(OutgoingResult& result, const std::stop_token& stop) {
    v1::OpenUploadRequest request;
    Describe(result.info, request.mutable_description());
    request.set_size(result.file->size());
    for (;;) {
      const bool digested = result.digest.position() == result.file->size();
      if (digested) request.set_sha256(result.digest.Sha256());
      v1::OpenUploadResponse opened;
      StoppableContext context(stop);
      const grpc::Status status = stub_->OpenUpload(context.get(), request, &opened);
      if (status.ok()) return opened;
      const absl::Status refused = FromUnary(status, stop);
      if (digested || ReasonOf(refused) != "RUN_SEALED") return refused;
      RETURN_IF_ERROR(DigestUpTo(result, result.file->size(), stop));
    }
  }

  absl::StatusOr<CommitReceipt> Upload(OutgoingResult& result, const std::stop_token& stop,
                                       TryOutcome* outcome) {
    ASSIGN_OR_RETURN(const v1::OpenUploadResponse opened, Open(result, stop));
    if (opened.has_committed()) {
      // The digest is complete if this process sent all bytes. The file may change after that.
      if (result.digest.position() < result.file->size()) {
        RETURN_IF_ERROR(DigestUpTo(result, result.file->size(), stop));
      }
      return CheckCommitted(result, opened.committed());
    }
    if (opened.offset() < 0 || opened.offset() > result.file->size() || opened.chunk_max() <= 0) {
      return errors::InvalidOpenResponse(opened.offset(), result.file->size(), opened.chunk_max());
    }
    outcome->opened = true;
    // Digests before the stream begins, because the stream must not stall while a large file is
    // digested.
    RETURN_IF_ERROR(DigestUpTo(result, opened.offset(), stop));
    UploadClientStream stream(channel_, opened.offset(), stop);
    const auto end = Send(result, opened, stream);
    outcome->progressed = stream.acknowledged() > opened.offset();
    if (!end.ok()) return end.status();
    if (end->has_committed()) return CheckCommitted(result, end->committed());
    outcome->spooled = true;
    return errors::ResultSpooled(end->spooled().relay(),
                                 absl::FromUnixSeconds(end->spooled().expire_time().seconds()));
  }

  absl::StatusOr<v1::UploadResponse> Send(OutgoingResult& result,
                                          const v1::OpenUploadResponse& opened,
                                          UploadClientStream& stream) {
    v1::UploadRequest start;
    start.mutable_start()->set_upload_id(opened.upload_id());
    start.mutable_start()->set_epoch(opened.epoch());
    RETURN_IF_ERROR(stream.Send(std::move(start), false));
    RETURN_IF_ERROR(SendChunks(result, opened, stream));
    RETURN_IF_ERROR(result.file->CheckUnchanged());
    v1::UploadRequest finish;
    finish.mutable_finish()->set_size(result.file->size());
    finish.mutable_finish()->set_crc32c(result.digest.crc32c());
    finish.mutable_finish()->set_sha256(result.digest.Sha256());
    RETURN_IF_ERROR(Sign(result, finish.mutable_finish()->mutable_signature()));
    RETURN_IF_ERROR(stream.Send(std::move(finish), true));
    return stream.AwaitEnd();
  }

  absl::Status SendChunks(OutgoingResult& result, const v1::OpenUploadResponse& opened,
                          UploadClientStream& stream) {
    const int64_t size = result.file->size();
    const int64_t chunk_max = std::clamp(opened.chunk_max(), kChunkLeast, kChunkMost);
    // A window below one chunk would block the upload.
    const int64_t window = std::max(opened.window(), chunk_max);
    ChunkCompressor compressor;
    std::string raw;
    for (int64_t offset = opened.offset(); offset < size;) {
      raw.resize(static_cast<size_t>(std::min(chunk_max, size - offset)));
      RETURN_IF_ERROR(result.file->ReadAt(offset, raw));
      RETURN_IF_ERROR(result.file->CheckUnchanged());
      const int64_t end = offset + static_cast<int64_t>(raw.size());
      result.digest.Add(offset, raw);
      v1::UploadRequest request;
      v1::UploadRequest::Chunk& chunk = *request.mutable_chunk();
      chunk.set_offset(offset);
      chunk.set_raw_size(static_cast<int64_t>(raw.size()));
      chunk.set_crc32c(Crc32c(raw));
      if (opened.zstd_accepted() && compressor.Compress(raw, chunk.mutable_data())) {
        chunk.set_encoding(v1::UploadRequest::ENCODING_ZSTD);
      } else {
        chunk.mutable_data()->swap(raw);
      }
      RETURN_IF_ERROR(stream.AwaitWindow(end, window));
      RETURN_IF_ERROR(stream.Send(std::move(request), false));
      offset = end;
    }
    return absl::OkStatus();
  }

  // Digests the bytes before the offset, which an earlier attempt or process has sent.
  absl::Status DigestUpTo(OutgoingResult& result, int64_t offset, const std::stop_token& stop) {
    std::string raw;
    while (result.digest.position() < offset) {
      if (stop.stop_requested()) return errors::Interrupted();
      const int64_t from = result.digest.position();
      raw.resize(static_cast<size_t>(std::min(kChunkMost, offset - from)));
      RETURN_IF_ERROR(result.file->ReadAt(from, raw));
      result.digest.Add(from, raw);
    }
    return result.file->CheckUnchanged();
  }

  // Checks by the complete digest whether the result that the service has is the delivered one. The
  // service answers an error result with the result that it keeps, which may be another one.
  static absl::StatusOr<CommitReceipt> CheckCommitted(OutgoingResult& result,
                                                      const v1::Result& committed) {
    const bool replaced = result.info.is_error && committed.outcome() == v1::OUTCOME_GENUINE;
    const bool same = !replaced && committed.size() == result.file->size() &&
                      committed.crc32c() == result.digest.crc32c() &&
                      (committed.sha256().empty() || committed.sha256() == result.digest.Sha256());
    if (!same && result.info.is_error && committed.outcome() == v1::OUTCOME_ERROR) {
      return errors::ErrorConflict(result.info.plugin, result.info.node);
    }
    if (!same) return errors::ResultConflict(result.info.plugin, result.info.node);
    return ReceiptOf(committed);
  }

  const std::shared_ptr<const Sender> sender_;
  std::deque<RenewedChannel> channels_;  // one for each target
  size_t current_ = 0;
  // The current attempt.
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::ResultService::Stub> stub_;
};

}  // namespace

std::unique_ptr<ResultTransport> MakeGrpcTransport(const std::vector<std::string>& targets,
                                                   std::shared_ptr<const Sender> sender) {
  return std::make_unique<GrpcTransport>(targets, std::move(sender));
}

}  // namespace muster::client
