// Follows the verdicts of the status service for as long as the aggregator lives.
#ifndef MUSTER_SERVICES_AGGREGATOR_VERDICTS_VERDICT_FOLLOWER_H_
#define MUSTER_SERVICES_AGGREGATOR_VERDICTS_VERDICT_FOLLOWER_H_

#include <optional>
#include <string>

#include "muster/v1/verdicts.pb.h"
#include "services/aggregator/verdicts/verdicts.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/base/timers.h"
#include "services/common/rpc/service_channel.h"
#include "services/common/service/stream_follower.h"

namespace muster {

// Passes each verdict to Verdicts. After a lost connection, and after a verdict that failed, the
// follower reconnects with full jitter and receives all current verdicts again. While the status
// service is unavailable, nothing happens. Thread-safe.
class VerdictFollower {
 public:
  // All of these outlive this object.
  VerdictFollower(GetChannel status, Verdicts& verdicts, const Clock& clock, TimerService& timers,
                  Executor& executor);

  // Calls Stop.
  ~VerdictFollower();

  // Closes the stream and waits for the verdicts that are being executed. Idempotent.
  void Stop();

  // Returns whether the stream is open and brought a message within the last 15 s.
  bool connected() const;

 private:
  using Follower = StreamFollower<v1::FollowVerdictsRequest, v1::Verdict>;

  Follower::Options MakeOptions(GetChannel status);
  void Handle(const v1::Verdict& verdict, Verdicts::Done done);
  void Ended(const absl::Status& why, bool received);

  Verdicts& verdicts_;
  std::optional<std::string> logged_;  // the reason that was logged last; used by Ended
  Follower follower_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_VERDICTS_VERDICT_FOLLOWER_H_
