// The certificate of the fleet's command authority, as the aggregator reports it.
#ifndef MUSTER_SERVICES_JOBS_COMMAND_CA_H_
#define MUSTER_SERVICES_JOBS_COMMAND_CA_H_

#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/base/executor.h"
#include "services/common/base/mutex.h"
#include "services/common/base/scheduled_task.h"
#include "services/common/base/timers.h"
#include "services/common/identity/certificate.h"
#include "services/common/rpc/service_channel.h"
#include "services/common/rpc/task_answer.h"

namespace muster {

// Asks the aggregator every second until it has answered: a fleet keeps its command authority. An
// answer that arrives after the destructor is dropped. Thread-safe.
class CommandCa {
 public:
  // The timers and the executor outlive it.
  CommandCa(GetChannel aggregator, TimerService& timers, Executor& executor);
  ~CommandCa();

  void Start() { task_.RunNow(); }

  // Returns nothing until the aggregator has answered.
  std::optional<Certificate> Get() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Answer = TaskAnswer<std::pair<absl::Status, v1::CommandRevocations>>;

  void Step() ABSL_LOCKS_EXCLUDED(mutex_);
  void Ask();

  const GetChannel aggregator_;
  const std::shared_ptr<Answer> answer_ = std::make_shared<Answer>();
  bool asked_ = false;  // used by the task
  mutable Mutex mutex_;
  std::optional<Certificate> certificate_ ABSL_GUARDED_BY(mutex_);
  ScheduledTask task_;  // last: it uses the members above
};

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_COMMAND_CA_H_
