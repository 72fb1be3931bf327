#include "services/status/verdict_service.h"

#include <memory>
#include <utility>

#include "services/common/base/status_macros.h"
#include "services/common/rpc/stream.h"

namespace muster {
namespace {

// A heartbeat is sent after this time without a verdict.
constexpr absl::Duration kHeartbeat = absl::Milliseconds(4500);

// Not thread-safe (a stream asks one thing at a time).
class VerdictSource : public StreamSource<v1::Verdict> {
 public:
  VerdictSource(VerdictLog& verdicts, const Clock& clock, std::function<void()> wake)
      : verdicts_(verdicts), clock_(clock), watch_(verdicts.Watch(std::move(wake))) {}

  absl::StatusOr<Pull> Next(v1::Verdict* verdict) override {
    if (verdicts_.closed()) return Pull::kEnd;
    const absl::Duration now = clock_.MonotonicNow();
    if (auto next = verdicts_.Next(sent_)) {
      sent_ = next->number;
      *verdict = std::move(next->verdict);
    } else if (now - sent_at_ >= kHeartbeat) {
      verdict->mutable_heartbeat();
    } else {
      return Pull::kWait;
    }
    sent_at_ = now;
    return Pull::kMessage;
  }

 private:
  VerdictLog& verdicts_;
  const Clock& clock_;
  const VerdictLog::Handle watch_;
  uint64_t sent_ = 0;
  absl::Duration sent_at_ = -absl::InfiniteDuration();  // the first is sent immediately
};

}  // namespace

grpc::ServerWriteReactor<v1::Verdict>* VerdictService::FollowVerdicts(
    grpc::CallbackServerContext* context, const v1::FollowVerdictsRequest*) {
  return StartSourceStream<v1::Verdict>(
      runtime_, context, "/muster.v1.VerdictService/FollowVerdicts", kWatchStreams,
      [this](Call& call, std::function<void()> wake)
          -> absl::StatusOr<std::unique_ptr<StreamSource<v1::Verdict>>> {
        RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
        return std::make_unique<VerdictSource>(verdicts_, clock_, std::move(wake));
      });
}

}  // namespace muster
