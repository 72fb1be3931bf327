// Finds out what became of deployments on nodes that the root relay gave up.
#ifndef MUSTER_SERVICES_JOBS_LATE_OUTCOMES_H_
#define MUSTER_SERVICES_JOBS_LATE_OUTCOMES_H_

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/base/executor.h"
#include "services/common/base/scheduled_task.h"
#include "services/common/base/timers.h"
#include "services/common/rpc/service_channel.h"
#include "services/common/rpc/task_answer.h"
#include "services/jobs/deployment_store.h"
#include "services/jobs/unsettled_deployments.h"

namespace muster {

// A node that was unreachable at the end of a deployment may return later with the outcome, which
// the root relay then has. Asks it every half minute for the jobs of such deployments, one after
// the other, at most 50 at a time. A deployment whose job has late records is open again until they
// are stored. Destroy it before the objects that its parts name.
class LateOutcomes {
 public:
  struct Parts {
    UnsettledDeployments& deployments;
    GetChannel relay;  // the root relay
    // Follows a deployment that is open again. Must not block.
    std::function<void(DeploymentOfCreator deployment)> follow;
    TimerService& timers;
    Executor& executor;  // tasks wait for the disk
  };

  explicit LateOutcomes(Parts parts);
  // Waits for its task. An answer of the relay that arrives later is dropped.
  ~LateOutcomes();

  void Start() { task_.RunNow(); }

 private:
  using Answer = TaskAnswer<std::pair<absl::Status, v1::Job>>;

  void Step();
  void Ask();
  void Handle(const UnsettledDeployment& asked, const absl::Status& status, const v1::Job& job);

  const Parts parts_;
  const std::shared_ptr<Answer> answer_ = std::make_shared<Answer>();
  // Used by the task.
  std::deque<UnsettledDeployment> waiting_;
  std::optional<UnsettledDeployment> asked_;
  int64_t after_ = 0;   // UnsettledDeployment::id
  ScheduledTask task_;  // last: it uses the members above
};

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_LATE_OUTCOMES_H_
