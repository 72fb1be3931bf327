#include "services/relay/jobs/running_job.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "services/common/base/fake_clock.h"
#include "services/common/base/simulated_disk.h"
#include "services/common/rpc/proto_time.h"
#include "services/relay/testing/recorded_link.h"

namespace muster {
namespace {

class RunningJobTest : public ::testing::Test {
 protected:
  RunningJobTest() {
    EXPECT_TRUE(disk_.MakeFolder("/jobs").ok());
    EXPECT_TRUE(topology_.Attach(AttachedEntry("n1", "root", clock_.Now()), link_).ok());
    JobRequest request = Request();
    const v1::Job job = NewJob(request, "spiffe://fleet.test/user/o", clock_.Now());
    JobState::Plan plan = PlanOf(request, job, {"n1", "n2"}, 1'000);
    std::unique_ptr<Journal> log;
    auto folder = JobFolder::Create(disk_, "/jobs/j1", request.message, job, plan.targets,
                                    JobState::MaxLogSize(plan), &log);
    EXPECT_TRUE(folder.ok()) << folder.status();
    job_ = std::make_unique<RunningJob>(RunningJob::Fleet{topology_, dispatcher_, clock_},
                                        std::move(request), JobState(std::move(plan)),
                                        *std::move(folder), std::move(log));
  }

  JobRequest Request() const {
    v1::Command command;
    command.set_job("j1");
    command.mutable_targets()->set_all(true);
    ToProto(clock_.Now(), command.mutable_not_before());
    ToProto(clock_.Now() + absl::Minutes(5), command.mutable_not_after());
    ToProto(absl::Minutes(5), command.mutable_time_limit());
    v1::SubmitJobRequest message;
    message.mutable_command()->set_command(command.SerializeAsString());
    return ReadJobRequest(std::move(message)).value();
  }
  static v1::JobRecord Final(const std::string& node) {
    v1::JobRecord record;
    record.set_job("j1");
    record.set_node(node);
    record.set_sequence(1);
    record.mutable_final()->set_outcome(v1::JOB_OUTCOME_EXITED);
    return record;
  }
  std::vector<std::string> StoredNodes() {
    std::vector<std::string> nodes;
    const auto read =
        Journal::Read(disk_, RecordsPath("/jobs/j1"), [&](std::string_view bytes, int64_t) {
          v1::JobRecord record;
          EXPECT_TRUE(ParseRecord(bytes, &record).ok());
          nodes.push_back(record.node());
          return absl::OkStatus();
        });
    EXPECT_TRUE(read.ok()) << read.status();
    return nodes;
  }

  FakeClock clock_;
  SimulatedDisk disk_;
  Topology topology_{{.name = "root"}, clock_};
  CommandDispatcher dispatcher_{topology_, clock_};
  std::shared_ptr<RecordedLink> link_ = std::make_shared<RecordedLink>();
  std::unique_ptr<RunningJob> job_;
};

TEST_F(RunningJobTest, StartDispatchesToKnownNodesAndEndsUnknownOnes) {
  job_->Start();
  EXPECT_EQ(link_->Take().size(), 1U);
  EXPECT_EQ(job_->Describe().outcomes(0).outcome(), v1::JOB_OUTCOME_UNKNOWN);
  EXPECT_EQ(*job_->Store(), true);
  EXPECT_EQ(*job_->Store(), false);
  EXPECT_EQ(StoredNodes(), std::vector<std::string>{"n2"});
}

TEST_F(RunningJobTest, JobEndsWhenTheLastFinalRecordIsStored) {
  job_->Start();
  job_->Receive(Final("n1"));
  EXPECT_FALSE(job_->ended());
  ASSERT_TRUE(job_->Store().ok());
  EXPECT_TRUE(job_->ended());
  EXPECT_EQ(dispatcher_.open(), 0U);
  EXPECT_EQ(job_->Finish()->state(), v1::JOB_STATE_ENDED);
}

TEST_F(RunningJobTest, EndOfATargetWhoseFinalRecordWasDroppedStatesWhy) {
  job_->Start();
  v1::JobRecord started = Final("n1");
  started.mutable_started();
  job_->Receive(started);
  job_->NoteDropped("n1", absl::UnauthenticatedError("the signature does not match"));
  job_->NoteDropped("n2", absl::UnauthenticatedError("of a target that has ended"));
  clock_.Advance(absl::Minutes(11));
  job_->Tick();
  ASSERT_TRUE(job_->Store().ok());
  std::vector<std::string> details;
  ASSERT_TRUE(Journal::Read(disk_, RecordsPath("/jobs/j1"), [&](std::string_view bytes, int64_t) {
                v1::JobRecord record;
                EXPECT_TRUE(ParseRecord(bytes, &record).ok());
                if (record.node() == "n1" && record.has_final()) {
                  details.push_back(record.final().detail());
                }
                return absl::OkStatus();
              }).ok());
  EXPECT_EQ(details, std::vector<std::string>{
                         "it started, and its final record did not arrive in time; one that "
                         "arrived was dropped: the signature does not match"});
}

TEST_F(RunningJobTest, StoreAfterAFailureStoresEachRecordOnce) {
  job_->Start();
  job_->Receive(Final("n1"));
  disk_.FailAt(SimulatedDisk::Call::kSync, 1, EIO);
  EXPECT_FALSE(job_->Store().ok());
  ASSERT_TRUE(job_->Store().ok());
  EXPECT_EQ(StoredNodes(), (std::vector<std::string>{"n2", "n1"}));
}

}  // namespace
}  // namespace muster
