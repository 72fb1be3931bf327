#include "services/relay/proxy/spool_drain.h"

#include <grpcpp/channel.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "muster/v1/results.grpc.pb.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/relay.h"
#include "services/common/rpc/status.h"
#include "services/common/upload/upload_stream.h"

namespace muster {
namespace {

// One may be a large one on a thin line.
constexpr int kThreads = 3;

constexpr std::chrono::seconds kUnaryLimit{60};
constexpr int64_t kChunkMost = 1024 * 1024;

// How long nothing is looked at if nothing happens.
constexpr absl::Duration kRest = absl::Seconds(2);
constexpr absl::Duration kSweep = absl::Seconds(5);

// Ends a unary call when the drain stops.
class StoppableContext {
 public:
  explicit StoppableContext(const std::stop_token& stop)
      : cancel_(stop, [this] { context_.TryCancel(); }) {
    context_.set_deadline(std::chrono::system_clock::now() + kUnaryLimit);
  }
  grpc::ClientContext* get() { return &context_; }

 private:
  grpc::ClientContext context_;
  std::stop_callback<std::function<void()>> cancel_;
};

// Whether another try makes no sense. What the relay itself lacks passes; what the result lacks
// does not.
bool IsFinal(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  switch (status.code()) {
    case absl::StatusCode::kPermissionDenied:
      // Without a reason it is the gate above, which may not know this relay yet.
      return !reason.empty() && reason != "NOT_ATTACHED" && reason != "ROLE_NOT_ALLOWED";
    case absl::StatusCode::kNotFound:
      return reason == "RUN_NOT_FOUND";
    case absl::StatusCode::kUnauthenticated:
      return reason == "INVALID_SIGNATURE";
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kInvalidArgument:
      return !reason.empty();
    default:
      return false;
  }
}

absl::Status SendChunks(ByteSource& bytes, int64_t size, const v1::OpenUploadResponse& opened,
                        UploadStream& stream) {
  const int64_t chunk_max = std::min(opened.chunk_max(), kChunkMost);
  const int64_t window = std::max(opened.window(), chunk_max);
  for (int64_t offset = opened.offset(); offset < size;) {
    v1::UploadRequest request;
    v1::UploadRequest::Chunk& chunk = *request.mutable_chunk();
    std::string& raw = *chunk.mutable_data();
    raw.resize(static_cast<size_t>(std::min(chunk_max, size - offset)));
    for (size_t filled = 0; filled < raw.size();) {
      ASSIGN_OR_RETURN(const auto n, bytes.Read(std::span(raw).subspan(filled)));
      if (n == 0) return absl::DataLossError("the spool's file is shorter than it was");
      filled += n;
    }
    const int64_t end = offset + static_cast<int64_t>(raw.size());
    chunk.set_offset(offset);
    chunk.set_raw_size(end - offset);
    chunk.set_crc32c(Crc32c(raw));
    RETURN_IF_ERROR(stream.AwaitRoom(end, window));
    RETURN_IF_ERROR(stream.Send(std::move(request), false));
    offset = end;
  }
  return absl::OkStatus();
}

}  // namespace

SpoolDrain::SpoolDrain(Spool& spool, Upstream& upstream) : spool_(spool), upstream_(upstream) {
  watch_ = upstream.OnChange([this] { Wake(); });
  spool.set_on_complete([this] { Wake(); });
  for (int i = 0; i < kThreads; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { Run(stop); });
  }
}

SpoolDrain::~SpoolDrain() {
  watch_.reset();
  for (std::jthread& thread : threads_) thread.request_stop();
}

void SpoolDrain::Wake() {
  MutexLock lock(mutex_);
  ++events_;
  wake_.NotifyAll();
}

// Until something changes, or `delay` is over.
void SpoolDrain::Rest(absl::Duration delay, const std::stop_token& stop) {
  MutexLock lock(mutex_);
  const uint64_t seen = events_;
  wake_.WaitFor(mutex_, stop, delay,
                [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return events_ != seen; });
}

void SpoolDrain::SweepIfDue() {
  {
    MutexLock lock(mutex_);
    const absl::Time now = absl::Now();
    if (now - swept_ < kSweep) return;
    swept_ = now;
  }
  spool_.Sweep();
}

void SpoolDrain::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    SweepIfDue();
    if (upstream_.connected()) {
      RunOnce(stop);
    } else {
      Rest(kRest, stop);
    }
  }
}

void SpoolDrain::RunOnce(const std::stop_token& stop) {
  const auto delivery = spool_.Take();
  if (!delivery) return Rest(kRest, stop);
  const absl::Status status =
      delivery->expired ? TellExpired(*delivery, stop) : Deliver(*delivery, stop);
  const v1::ResultKey& key = delivery->header.description().key();
  if (status.ok() || IsFinal(status)) {
    const bool committed = status.ok() && !delivery->expired;
    Log(committed ? LogLevel::kInfo : LogLevel::kWarning,
        committed     ? "a result of the spool is committed"
        : status.ok() ? "a result of the spool has expired"
                      : "a result of the spool was refused above",
        {{"run", key.run()},
         {"plugin", key.plugin()},
         {"node", key.node()},
         {"why", status.ok() ? delivery->why : status.ToString()}});
    spool_.Finish(*delivery, committed           ? "committed"
                             : delivery->lost    ? "lost"
                             : delivery->expired ? "expired"
                                                 : "refused");
    return;
  }
  absl::BitGen random;
  const absl::Duration spread = absl::Milliseconds(absl::Uniform(random, 200, 3000));
  spool_.PutBack(*delivery, RetryAfterOf(status).value_or(absl::Seconds(1)) + spread);
  Log(LogLevel::kInfo, "a result of the spool is tried again",
      {{"run", key.run()}, {"plugin", key.plugin()}, {"node", key.node()}, {"error", status}});
  // Nobody is there: it would be the same for all others.
  if (absl::IsUnavailable(status)) Rest(spread, stop);
}

absl::Status SpoolDrain::Deliver(const SpoolDelivery& delivery, const std::stop_token& stop) {
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
  // The same content: another one would have been refused.
  if (opened.has_committed()) return absl::OkStatus();
  if (opened.offset() < 0 || opened.offset() > size || opened.chunk_max() <= 0) {
    return absl::InternalError("the upload was opened with nonsense");
  }
  ASSIGN_OR_RETURN(auto bytes, spool_.Read(delivery, opened.offset()));
  UploadStream stream(*stub, opened.offset(), stop);
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

absl::Status SpoolDrain::TellExpired(const SpoolDelivery& delivery, const std::stop_token& stop) {
  const auto channel = upstream_.Results();
  if (channel == nullptr) return errors::RelayCutOff();
  v1::SubmitResultRequest request = delivery.header;
  request.mutable_description()->set_is_error(true);
  request.mutable_description()->set_media_type("text/plain; charset=utf-8");
  request.mutable_description()->set_file_name("error.txt");
  request.set_body(delivery.why);
  request.set_crc32c(Crc32c(delivery.why));
  request.set_sha256(DigestBytes(Sha256::Of(delivery.why)));
  StoppableContext context(stop);
  v1::Result response;
  return FromGrpc(
      v1::ResultService::NewStub(channel)->SubmitResult(context.get(), request, &response));
}

}  // namespace muster
