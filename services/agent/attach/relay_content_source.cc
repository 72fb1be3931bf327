#include "services/agent/attach/relay_content_source.h"

#include <grpcpp/client_context.h>

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "muster/v1/contents.grpc.pb.h"
#include "services/common/base/crc32c.h"
#include "services/common/errors/contents.h"
#include "services/common/errors/rpc.h"
#include "services/common/rpc/status.h"

namespace muster {
namespace {

constexpr std::chrono::seconds kAnswerWithin(30);
constexpr absl::Duration kLookForStop = absl::Milliseconds(100);

// A call in progress. Thread-safe.
struct ReadCall {
  std::unique_ptr<v1::ContentService::Stub> stub;
  grpc::ClientContext context;
  v1::ReadContentRequest request;
  v1::ReadContentResponse response;
  Mutex mutex;
  CondVar ended;
  std::optional<absl::Status> status ABSL_GUARDED_BY(mutex);
};

}  // namespace

absl::StatusOr<std::string> RelayContentSource::Read(const std::string& deployment,
                                                     const std::string& sha256, int64_t offset,
                                                     absl::FunctionRef<bool()> stopped) {
  {
    MutexLock lock(mutex_);
    while (reads_ >= kMaxReads) {
      if (stopped()) return absl::CancelledError("it was stopped");
      released_.WaitFor(mutex_, kLookForStop, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return reads_ < kMaxReads;
      });
    }
    ++reads_;
  }
  const absl::Cleanup release = [this] {
    {
      MutexLock lock(mutex_);
      --reads_;
    }
    released_.NotifyAll();
  };
  const auto channel = channel_();
  if (channel == nullptr) return errors::Unreachable("this node is not attached to a relay");
  const auto call = std::make_shared<ReadCall>();
  call->stub = v1::ContentService::NewStub(channel);
  call->context.set_deadline(std::chrono::system_clock::now() + kAnswerWithin);
  call->request.set_deployment(deployment);
  call->request.set_sha256(sha256);
  call->request.set_offset(offset);
  call->stub->async()->ReadContent(&call->context, &call->request, &call->response,
                                   [call](const grpc::Status& status) {
                                     {
                                       MutexLock lock(call->mutex);
                                       call->status = FromGrpc(status);
                                     }
                                     call->ended.NotifyAll();
                                   });
  MutexLock lock(call->mutex);
  const auto has_ended = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(call->mutex) {
    return call->status.has_value();
  };
  while (!call->ended.WaitFor(call->mutex, kLookForStop, has_ended)) {
    if (stopped()) call->context.TryCancel();
  }
  if (!call->status->ok()) return *call->status;
  if (Crc32c(call->response.data()) != call->response.crc32c()) {
    return errors::ContentPartDamaged();
  }
  return std::move(*call->response.mutable_data());
}

}  // namespace muster
