#include "services/common/upload/upload_client_stream.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "services/common/base/mutex.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/client.h"

namespace muster {
namespace {

using Stream = ClientStream<v1::UploadRequest, v1::UploadResponse>;

StreamOptions Options() {
  StreamOptions options;
  options.notify_when_sent = true;
  return options;
}

}  // namespace

// The state of the stream: messages sent and received, and its end. Thread-safe.
class UploadClientStream::Progress final : public Stream::Handler {
 public:
  Progress(int64_t offset, std::stop_token stop, absl::Duration stall_limit)
      : stop_(std::move(stop)), stall_limit_(stall_limit), acknowledged_(offset) {}

  void OnStart(const std::shared_ptr<Stream>& stream) override {
    stream_ = stream;
    stream->ReadNext();
  }

  void OnMessage(v1::UploadResponse response) override {
    {
      MutexLock lock(mutex_);
      ++events_;
      if (response.has_ack()) acknowledged_ = std::max(acknowledged_, response.ack().written());
      if (response.has_committed() || response.has_spooled()) end_ = std::move(response);
      changed_.NotifyAll();
    }
    stream_->ReadNext();
  }

  void OnWritable() override {
    MutexLock lock(mutex_);
    ++events_;
    sending_ = false;
    changed_.NotifyAll();
  }

  void OnEnd(const absl::Status& status, EndedBy) override {
    stream_.reset();
    MutexLock lock(mutex_);
    status_ = status;
    changed_.NotifyAll();
  }

  // Waits until the previous message was sent. The next one must follow.
  absl::Status AwaitSent() {
    MutexLock lock(mutex_);
    RETURN_IF_ERROR(Await([this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !sending_; }));
    sending_ = true;
    return absl::OkStatus();
  }

  absl::Status AwaitWindow(int64_t end, int64_t window) {
    MutexLock lock(mutex_);
    return Await(
        [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return end - acknowledged_ <= window; });
  }

  absl::StatusOr<v1::UploadResponse> AwaitEnd() {
    MutexLock lock(mutex_);
    RETURN_IF_ERROR(
        Await([this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return end_.has_value(); }));
    return *end_;
  }

  int64_t acknowledged() const {
    MutexLock lock(mutex_);
    return acknowledged_;
  }

 private:
  // Waits for `ready`. Each event restarts the stall limit. After the end of the stream only the
  // response to `finish` counts.
  absl::Status Await(absl::FunctionRef<bool()> ready) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    while (true) {
      const uint64_t seen = events_;
      const bool moved = changed_.WaitFor(
          mutex_, stop_, stall_limit_, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
            return status_.has_value() || ready() || events_ != seen;
          });
      if (stop_.stop_requested()) return errors::Interrupted();
      if ((end_ || !status_) && ready()) return absl::OkStatus();
      if (status_) {
        return status_->ok() ? errors::StreamBroken("it ended before the result was committed")
                             : *status_;
      }
      if (!moved) return errors::NoUploadProgress(acknowledged_);
    }
  }

  const std::stop_token stop_;
  const absl::Duration stall_limit_;
  std::shared_ptr<Stream> stream_;  // used in callbacks only
  mutable Mutex mutex_;
  StoppableCondVar changed_;
  bool sending_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t events_ ABSL_GUARDED_BY(mutex_) = 0;  // messages sent or received
  int64_t acknowledged_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> status_ ABSL_GUARDED_BY(mutex_);  // of the ended stream
  std::optional<v1::UploadResponse> end_ ABSL_GUARDED_BY(mutex_);
};

UploadClientStream::UploadClientStream(const std::shared_ptr<grpc::Channel>& channel,
                                       int64_t offset, std::stop_token stop,
                                       absl::Duration stall_limit)
    : progress_(std::make_shared<Progress>(offset, std::move(stop), stall_limit)),
      stream_(Stream::Start(channel, "/muster.v1.ResultService/Upload", Options(), progress_)) {}

UploadClientStream::~UploadClientStream() = default;

// A stream that has ended drops the message, and the next wait returns its status.
absl::Status UploadClientStream::Send(v1::UploadRequest request, bool last) {
  RETURN_IF_ERROR(progress_->AwaitSent());
  if (last) {
    stream_->SendLast(std::move(request));
  } else {
    stream_->Send(std::move(request));
  }
  return absl::OkStatus();
}

absl::Status UploadClientStream::AwaitWindow(int64_t end, int64_t window) {
  return progress_->AwaitWindow(end, window);
}

absl::StatusOr<v1::UploadResponse> UploadClientStream::AwaitEnd() { return progress_->AwaitEnd(); }

int64_t UploadClientStream::acknowledged() const { return progress_->acknowledged(); }

}  // namespace muster
