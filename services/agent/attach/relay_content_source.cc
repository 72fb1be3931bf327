#include "services/agent/attach/relay_content_source.h"

#include <chrono>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "muster/v1/contents.grpc.pb.h"
#include "services/agent/attach/stoppable_call.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/contents.h"
#include "services/common/errors/rpc.h"

namespace muster {
namespace {

constexpr std::chrono::seconds kAnswerWithin(30);

}  // namespace

absl::StatusOr<std::string> RelayContentSource::Read(const std::string& deployment,
                                                     const std::string& sha256, int64_t offset,
                                                     absl::FunctionRef<bool()> stopped) {
  {
    MutexLock lock(mutex_);
    while (reads_ >= kMaxReads) {
      if (stopped()) return absl::CancelledError("it was stopped");
      released_.WaitFor(mutex_, kStopPoll, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
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
  v1::ReadContentRequest request;
  request.set_deployment(deployment);
  request.set_sha256(sha256);
  request.set_offset(offset);
  ASSIGN_OR_RETURN(
      auto response,
      (CallUntilStopped<v1::ContentService, v1::ReadContentRequest, v1::ReadContentResponse>(
          channel, &AsyncStub<v1::ContentService>::ReadContent, request, kAnswerWithin, stopped)));
  if (Crc32c(response.data()) != response.crc32c()) return errors::ContentPartDamaged();
  return std::move(*response.mutable_data());
}

}  // namespace muster
