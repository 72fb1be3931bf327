#include "services/common/upload/upload_stream.h"

#include <algorithm>
#include <utility>

#include "services/common/base/mutex.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/client.h"
#include "services/common/rpc/status.h"

namespace muster {
namespace {

// Longer than the server needs to make 8 MiB durable on a busy disk, or to publish a large result.
constexpr absl::Duration kStallLimit = absl::Seconds(90);

}  // namespace

UploadStream::UploadStream(v1::ResultService::Stub& stub, int64_t offset, std::stop_token stop)
    : stop_(std::move(stop)), acknowledged_(offset) {
  stub.async()->Upload(&context_, this);
  StartRead(&response_);
  StartCall();
}

UploadStream::~UploadStream() {
  MutexLock lock(mutex_);
  if (done_) return;
  context_.TryCancel();
  while (!done_) changed_.Wait(mutex_);
}

absl::Status UploadStream::Send(v1::UploadRequest request, bool last) {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(Await([this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !writing_; }));
  request_ = std::move(request);
  writing_ = true;
  // Under the lock: reads_ended_ is not set, so the read in progress keeps this object alive.
  if (last) {
    StartWriteLast(&request_, grpc::WriteOptions());
  } else {
    StartWrite(&request_);
  }
  return absl::OkStatus();
}

absl::Status UploadStream::AwaitRoom(int64_t end, int64_t window) {
  MutexLock lock(mutex_);
  return Await([&]()
                   ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return end - acknowledged_ <= window; });
}

absl::StatusOr<v1::UploadResponse> UploadStream::AwaitEnd() {
  MutexLock lock(mutex_);
  if (auto status =
          Await([this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return end_.has_value(); });
      !status.ok()) {
    return status;
  }
  return *end_;
}

int64_t UploadStream::acknowledged() const {
  MutexLock lock(mutex_);
  return acknowledged_;
}

absl::Status UploadStream::Await(absl::FunctionRef<bool()> ready) {
  // Once the reads have ended nothing may be started: only the end of the stream counts then.
  const auto usable = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return (end_ || !reads_ended_) && ready();
  };
  while (true) {
    const uint64_t seen = events_;
    const bool moved =
        changed_.WaitFor(mutex_, stop_, kStallLimit, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
          return done_ || usable() || events_ != seen;
        });
    if (stop_.stop_requested()) return errors::Interrupted();
    if (usable()) return absl::OkStatus();
    if (done_) {
      return status_.ok() ? errors::StreamBroken("it ended before the result was committed")
                          : status_;
    }
    if (!moved) return errors::NoUploadProgress(acknowledged_);
  }
}

void UploadStream::OnReadDone(bool ok) {
  MutexLock lock(mutex_);
  ++events_;
  if (!ok) {
    reads_ended_ = true;
  } else {
    if (response_.has_ack()) acknowledged_ = std::max(acknowledged_, response_.ack().written());
    if (response_.has_committed() || response_.has_spooled()) end_ = response_;
    response_.Clear();
    StartRead(&response_);
  }
  changed_.NotifyAll();
}

void UploadStream::OnWriteDone(bool ok) {
  MutexLock lock(mutex_);
  ++events_;
  writing_ = !ok;  // a failed write ends the stream: nothing may follow
  changed_.NotifyAll();
}

void UploadStream::OnDone(const grpc::Status& status) {
  MutexLock lock(mutex_);
  done_ = true;
  status_ = FromGrpc(status);
  changed_.NotifyAll();
}

}  // namespace muster
