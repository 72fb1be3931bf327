// Follows the status service's verdicts, for as long as the aggregator lives.
#ifndef MUSTER_SERVICES_AGGREGATOR_VERDICTS_VERDICT_FOLLOWER_H_
#define MUSTER_SERVICES_AGGREGATOR_VERDICTS_VERDICT_FOLLOWER_H_

#include <grpcpp/channel.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <thread>

#include "muster/v1/verdicts.grpc.pb.h"
#include "services/aggregator/verdicts/verdicts.h"
#include "services/common/base/clock.h"

namespace muster {

// One thread with one stream, as the status service's own follower. After a lost connection, and
// after a verdict that could not be carried out, it connects anew with full jitter: all verdicts
// that stand are told again. While the status service is away nothing happens. Thread-safe.
class VerdictFollower {
 public:
  // `verdicts` must live longer.
  VerdictFollower(std::shared_ptr<grpc::Channel> channel, Verdicts& verdicts, const Clock& clock);

  // Stops.
  ~VerdictFollower();

  // Follows no more; waits for what is being carried out.
  void Stop();

  // Whether the stream is open and brought something within the last 15 s.
  bool connected() const;

 private:
  void Run(const std::stop_token& stop);
  absl::Status FollowOnce(const std::stop_token& stop);
  void Take(const v1::Verdict& verdict, Verdicts::Done done);

  const std::unique_ptr<v1::VerdictService::Stub> stub_;
  Verdicts& verdicts_;
  const Clock& clock_;
  std::atomic<int64_t> heard_at_ = 0;  // monotonic nanoseconds; 0: not connected
  std::jthread thread_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_VERDICTS_VERDICT_FOLLOWER_H_
