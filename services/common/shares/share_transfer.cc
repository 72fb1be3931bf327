#include "services/common/shares/share_transfer.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/v1/shares.grpc.pb.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/results.h"
#include "services/common/errors/shares.h"
#include "services/common/rpc/call_end.h"
#include "services/common/rpc/status.h"

namespace muster {
namespace {

constexpr std::chrono::seconds kAnswerWithin(30);
constexpr int64_t kSlowest = 64 * 1024;  // bytes a second
constexpr int64_t kPiece = 256 * 1024;
constexpr size_t kMaxListBytes = size_t{256} << 20;
constexpr size_t kLeastPage = 16 * 1024;  // counts for a smaller one

std::chrono::system_clock::time_point DeadlineFor(int64_t bytes) {
  return std::chrono::system_clock::now() + kAnswerWithin + std::chrono::seconds(bytes / kSlowest);
}

}  // namespace

void CallStopper::Stop() {
  MutexLock lock(mutex_);
  stopped_ = true;
  for (grpc::ClientContext* call : calls_) call->TryCancel();
}

CallStopper::Guard::Guard(CallStopper& stopper, grpc::ClientContext& context)
    : stopper_(stopper), context_(context) {
  MutexLock lock(stopper_.mutex_);
  stopper_.calls_.insert(&context_);
  if (stopper_.stopped_) context_.TryCancel();
}

CallStopper::Guard::~Guard() {
  MutexLock lock(stopper_.mutex_);
  stopper_.calls_.erase(&context_);
}

struct ShareTransfer::Stub {
  std::unique_ptr<v1::ShareService::Stub> service;

  template <typename Request, typename Response>
  absl::Status Call(CallStopper& stopper,
                    grpc::Status (v1::ShareService::Stub::*method)(grpc::ClientContext*,
                                                                   const Request&, Response*),
                    const Request& request, Response* response) {
    grpc::ClientContext context;
    context.set_deadline(DeadlineFor(0));
    const CallStopper::Guard guard(stopper, context);
    return FromGrpc((service.get()->*method)(&context, request, response));
  }
};

ShareTransfer::ShareTransfer(const std::shared_ptr<grpc::Channel>& channel, CallStopper& stopper)
    : stub_(std::make_unique<Stub>(Stub{v1::ShareService::NewStub(channel)})), stopper_(stopper) {}

ShareTransfer::~ShareTransfer() = default;

absl::StatusOr<ShareTransfer::Sent> ShareTransfer::Send(const v1::SharedFile& file,
                                                        bool only_if_elsewhere,
                                                        const OpenSource& open,
                                                        const Progress& progress) {
  v1::OpenShareRequest request;
  *request.mutable_file() = file;
  request.set_only_if_elsewhere(only_if_elsewhere);
  v1::OpenShareResponse opened;
  RETURN_IF_ERROR(stub_->Call(stopper_, &v1::ShareService::Stub::OpenShare, request, &opened));
  Sent sent;
  sent.retain = opened.retain();
  if (opened.has_existing()) sent.share = opened.existing();
  if (opened.retain() || opened.has_existing()) return sent;
  ASSIGN_OR_RETURN(auto source, open(opened.offset()));
  RETURN_IF_ERROR(SendFrom(opened, file, *source, progress, &sent));
  return sent;
}

absl::Status ShareTransfer::SendFrom(const v1::OpenShareResponse& opened,
                                     const v1::SharedFile& file, ByteSource& source,
                                     const Progress& progress, Sent* sent) {
  grpc::ClientContext context;
  context.set_deadline(DeadlineFor(file.size() - opened.offset()));
  const CallStopper::Guard guard(stopper_, context);
  const auto stream = stub_->service->UploadShare(&context, &sent->share);
  v1::UploadShareRequest request;
  request.mutable_start()->set_upload_id(opened.upload_id());
  request.mutable_start()->set_epoch(opened.epoch());
  bool taken = stream->Write(request);
  absl::Status read;
  int64_t offset = opened.offset();
  const auto piece = static_cast<size_t>(std::clamp<int64_t>(opened.chunk_max(), 1, kPiece));
  while (taken) {
    v1::FileChunk& chunk = *request.mutable_chunk();
    chunk.mutable_data()->resize(piece);
    const auto n = source.Read(*chunk.mutable_data());
    if (!n.ok()) {
      read = n.status();
      context.TryCancel();
      break;
    }
    if (*n == 0) break;
    chunk.mutable_data()->resize(*n);
    chunk.set_offset(offset);
    chunk.set_crc32c(Crc32c(chunk.data()));
    taken = stream->Write(request);
    offset += static_cast<int64_t>(*n);
    sent->bytes += static_cast<int64_t>(*n);
    if (progress) progress(offset);
  }
  if (taken && read.ok()) {
    request.mutable_finish();
    stream->WriteLast(request, grpc::WriteOptions());
  }
  const absl::Status status = FromGrpc(stream->Finish());
  return read.ok() ? status : read;
}

absl::Status ShareTransfer::ListAll(v1::ListSharesRequest request,
                                    absl::FunctionRef<void(v1::ListSharesResponse)> handle) {
  std::set<std::string> tokens;
  size_t bytes = 0;
  do {
    ASSIGN_OR_RETURN(v1::ListSharesResponse page, List(request));
    bytes += std::max(page.ByteSizeLong(), kLeastPage);
    if (bytes > kMaxListBytes) {
      return errors::EndlessShareList(absl::StrCat("it has more than ", kMaxListBytes, " bytes"));
    }
    request.set_page_token(page.next_page_token());
    if (!tokens.insert(request.page_token()).second) {
      return errors::EndlessShareList("a page refers to an earlier one");
    }
    handle(std::move(page));
  } while (!request.page_token().empty());
  return absl::OkStatus();
}

// Not thread-safe.
class ShareTransfer::Reader : public ByteSource {
 public:
  Reader(v1::ShareService::Stub& service, CallStopper& stopper, const v1::SharedFile& file,
         int64_t offset)
      : guard_(stopper, context_), offset_(offset) {
    v1::ReadShareRequest request;
    *request.mutable_key() = file.key();
    request.set_sha256(file.sha256());
    request.set_offset(offset);
    context_.set_deadline(DeadlineFor(file.size() - offset));
    stream_ = service.ReadShare(&context_, request);
  }

  ~Reader() override {
    if (end_) return;
    context_.TryCancel();
    stream_->Finish();
  }

  absl::StatusOr<size_t> Read(std::span<char> buffer) override {
    while (at_ == chunk_.data().size()) {
      if (end_) return Ended();
      if (!stream_->Read(&chunk_)) {
        end_ = AwaitCallEnd(context_, [this] { return stream_->Finish(); });
        return Ended();
      }
      at_ = 0;
      if (chunk_.offset() != offset_) return errors::OffsetTooHigh(chunk_.offset(), offset_);
      if (Crc32c(chunk_.data()) != chunk_.crc32c()) return errors::CrcMismatch("chunk");
      offset_ += static_cast<int64_t>(chunk_.data().size());
    }
    const size_t n = std::min(buffer.size(), chunk_.data().size() - at_);
    std::copy_n(chunk_.data().data() + at_, n, buffer.data());
    at_ += n;
    return n;
  }

 private:
  absl::StatusOr<size_t> Ended() const {
    if (!end_->ok()) return *end_;
    return 0;
  }

  grpc::ClientContext context_;
  const CallStopper::Guard guard_;
  std::unique_ptr<grpc::ClientReader<v1::FileChunk>> stream_;
  v1::FileChunk chunk_;
  size_t at_ = 0;  // the bytes of the chunk that were read
  int64_t offset_;
  std::optional<absl::Status> end_;
};

std::unique_ptr<ByteSource> ShareTransfer::Open(const v1::SharedFile& file, int64_t offset) {
  return std::make_unique<Reader>(*stub_->service, stopper_, file, offset);
}

absl::StatusOr<v1::Share> ShareTransfer::Get(const v1::ShareKey& key, const std::string& relay) {
  v1::GetShareRequest request;
  *request.mutable_key() = key;
  request.set_relay(relay);
  v1::Share share;
  RETURN_IF_ERROR(stub_->Call(stopper_, &v1::ShareService::Stub::GetShare, request, &share));
  return share;
}

absl::StatusOr<v1::ListSharesResponse> ShareTransfer::List(const v1::ListSharesRequest& request) {
  v1::ListSharesResponse response;
  RETURN_IF_ERROR(stub_->Call(stopper_, &v1::ShareService::Stub::ListShares, request, &response));
  return response;
}

absl::Status ShareTransfer::Remove(const v1::ShareKey& key, const std::string& relay) {
  v1::RemoveShareRequest request;
  *request.mutable_key() = key;
  request.set_relay(relay);
  v1::RemoveShareResponse response;
  return stub_->Call(stopper_, &v1::ShareService::Stub::RemoveShare, request, &response);
}

absl::Status ShareTransfer::Report(const v1::Share& share) {
  v1::ReportShareRequest request;
  *request.mutable_share() = share;
  v1::ReportShareResponse response;
  return stub_->Call(stopper_, &v1::ShareService::Stub::ReportShare, request, &response);
}

absl::Status ShareTransfer::Answer(const v1::AnswerShareQueryRequest& answer) {
  v1::AnswerShareQueryResponse response;
  return stub_->Call(stopper_, &v1::ShareService::Stub::AnswerShareQuery, answer, &response);
}

}  // namespace muster
