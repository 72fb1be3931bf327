// Jobs of a root relay on a simulated disk, for tests of the parts of the job board.
#ifndef MUSTER_SERVICES_RELAY_TESTING_JOB_FIXTURE_H_
#define MUSTER_SERVICES_RELAY_TESTING_JOB_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/simulated_disk.h"
#include "services/common/rpc/proto_time.h"
#include "services/relay/jobs/job_folder.h"
#include "services/relay/jobs/job_request.h"
#include "services/relay/jobs/job_state.h"
#include "services/relay/jobs/running_job.h"
#include "services/relay/testing/recorded_link.h"

namespace muster::testing {

// Returns the request for a command on all nodes, which starts within five minutes from `now` and
// runs for at most five minutes.
inline JobRequest MakeJobRequest(const std::string& id, absl::Time now) {
  v1::Command command;
  command.set_job(id);
  command.mutable_targets()->set_all(true);
  command.add_argv("/bin/true");
  ToProto(now, command.mutable_not_before());
  ToProto(now + absl::Minutes(5), command.mutable_not_after());
  ToProto(absl::Minutes(5), command.mutable_time_limit());
  v1::SubmitJobRequest message;
  message.mutable_command()->set_command(command.SerializeAsString());
  return ReadJobRequest(std::move(message)).value();
}

// A disk, and the parts of a root relay that a job uses, with the attached node n1.
class JobFixture : public ::testing::Test {
 protected:
  // A new job and its open files.
  struct Stored {
    JobRequest request;
    v1::Job job;
    JobState::Plan plan;
    std::unique_ptr<JobFolder> folder;
    std::unique_ptr<Journal> log;
  };

  JobFixture() {
    EXPECT_TRUE(topology_.Attach(AttachedEntry("n1", "root", clock_.Now()), link_).ok());
  }

  // Stores a new job in /jobs.
  Stored Store(const std::string& id, std::vector<std::string> targets = {"n1"}) {
    EXPECT_TRUE(MakeFolders(disk_, "/jobs").ok());
    Stored stored;
    stored.request = MakeJobRequest(id, clock_.Now());
    stored.job = NewJob(stored.request, "spiffe://fleet.test/user/o", clock_.Now());
    stored.plan = PlanOf(stored.request, stored.job, std::move(targets), kMaxOutput);
    stored.folder =
        JobFolder::Create(disk_, "/jobs/" + id, stored.request.message, stored.job,
                          stored.plan.targets, JobState::MaxLogSize(stored.plan), &stored.log)
            .value();
    return stored;
  }
  // Returns the job in this process. It is not started yet.
  std::shared_ptr<RunningJob> MakeRunning(Stored stored) {
    return std::make_shared<RunningJob>(fleet_, std::move(stored.request),
                                        JobState(std::move(stored.plan)), std::move(stored.folder),
                                        std::move(stored.log));
  }

  static constexpr int64_t kMaxOutput = 100'000;

  FakeClock clock_;
  SimulatedDisk disk_;
  Topology topology_{{.name = "root"}, clock_};
  CommandDispatcher dispatcher_{topology_, clock_};
  const RunningJob::Fleet fleet_{topology_, dispatcher_, clock_};
  const std::shared_ptr<RecordedLink> link_ = std::make_shared<RecordedLink>();  // of n1
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_RELAY_TESTING_JOB_FIXTURE_H_
