#include "services/relay/proxy/result_sender.h"

#include <grpcpp/channel.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "muster/v1/results.grpc.pb.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/relay.h"
#include "services/common/rpc/status.h"
#include "services/common/rpc/stoppable_context.h"
#include "services/common/upload/upload_client_stream.h"

namespace muster {
namespace {

constexpr int64_t kMaxChunk = 1024 * 1024;

absl::Status SendChunks(ByteSource& bytes, int64_t size, const v1::OpenUploadResponse& opened,
                        UploadClientStream& stream) {
  const int64_t chunk_max = std::min(opened.chunk_max(), kMaxChunk);
  const int64_t window = std::max(opened.window(), chunk_max);
  for (int64_t offset = opened.offset(); offset < size;) {
    v1::UploadRequest request;
    v1::UploadRequest::Chunk& chunk = *request.mutable_chunk();
    std::string& raw = *chunk.mutable_data();
    raw.resize(static_cast<size_t>(std::min(chunk_max, size - offset)));
    for (size_t filled = 0; filled < raw.size();) {
      ASSIGN_OR_RETURN(const auto n, bytes.Read(std::span(raw).subspan(filled)));
      if (n == 0) return absl::DataLossError("the file in the spool is shorter than its record");
      filled += n;
    }
    const int64_t end = offset + static_cast<int64_t>(raw.size());
    chunk.set_offset(offset);
    chunk.set_raw_size(end - offset);
    chunk.set_crc32c(Crc32c(raw));
    RETURN_IF_ERROR(stream.AwaitWindow(end, window));
    RETURN_IF_ERROR(stream.Send(std::move(request), false));
    offset = end;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status UpstreamResultSender::Deliver(const SpoolDelivery& delivery,
                                           const std::stop_token& stop) {
  const auto channel = upstream_.Results();
  if (channel == nullptr) return errors::RelayCutOff();
  const auto stub = v1::ResultService::NewStub(channel);
  const v1::SubmitResultRequest& header = delivery.header;
  const int64_t size = header.spooled().size();
  v1::OpenUploadRequest request;
  *request.mutable_description() = header.description();
  request.set_size(size);
  request.set_sha256(header.sha256());
  *request.mutable_spooled() = header.spooled();
  v1::OpenUploadResponse opened;
  {
    StoppableContext context(stop);
    const grpc::Status status = stub->OpenUpload(context.get(), request, &opened);
    if (!status.ok()) return FromGrpc(status);
  }
  // With the same content: other content would have been rejected.
  if (opened.has_committed()) return absl::OkStatus();
  if (opened.offset() < 0 || opened.offset() > size || opened.chunk_max() <= 0) {
    return absl::InternalError("invalid OpenUpload response: offset or chunk_max out of range");
  }
  ASSIGN_OR_RETURN(auto bytes, spool_.Read(delivery, opened.offset()));
  UploadClientStream stream(channel, opened.offset(), stop);
  v1::UploadRequest start;
  start.mutable_start()->set_upload_id(opened.upload_id());
  start.mutable_start()->set_epoch(opened.epoch());
  RETURN_IF_ERROR(stream.Send(std::move(start), false));
  RETURN_IF_ERROR(SendChunks(*bytes, size, opened, stream));
  v1::UploadRequest finish;
  finish.mutable_finish()->set_size(size);
  finish.mutable_finish()->set_crc32c(header.crc32c());
  finish.mutable_finish()->set_sha256(header.sha256());
  *finish.mutable_finish()->mutable_signature() = header.spooled().signature();
  RETURN_IF_ERROR(stream.Send(std::move(finish), true));
  ASSIGN_OR_RETURN(const auto end, stream.AwaitEnd());
  return end.has_committed() ? absl::OkStatus() : errors::RelayCutOff();
}

absl::Status UpstreamResultSender::ReportExpired(const SpoolDelivery& delivery,
                                                 const std::stop_token& stop) {
  const auto channel = upstream_.Results();
  if (channel == nullptr) return errors::RelayCutOff();
  v1::SubmitResultRequest request = delivery.header;
  request.mutable_description()->set_is_error(true);
  request.set_body(delivery.why);
  request.set_crc32c(Crc32c(delivery.why));
  request.set_sha256(DigestBytes(Sha256::Of(delivery.why)));
  StoppableContext context(stop);
  v1::Result response;
  return FromGrpc(
      v1::ResultService::NewStub(channel)->SubmitResult(context.get(), request, &response));
}

}  // namespace muster
