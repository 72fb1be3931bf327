// Workspaces of containers of a real Docker daemon. The e2e tests send them to the jobs service.
#include "services/agent/jobs/job_workspace.h"

#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/agent/jobs/testing/job_container_fixture.h"
#include "services/common/base/clock.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

v1::SignedCommand DeploymentOf(const std::string& image) {
  return DeploymentCommand(image, "", [](v1::Command::Deployment& deployment) {
    deployment.mutable_workspace()->set_workspace("w");
  });
}

class JobWorkspaceTest : public JobContainerFixture {
 protected:
  JobWorkspaceTest() : JobContainerFixture(DeploymentOf) { workspaces_ = outbox_.get(); }

  JobPlan Plan(const std::string& script) {
    JobPlan plan = PlanOf(docker_->image(), script);
    plan.deployment = std::string(32, 'd');
    return plan;
  }

  const std::unique_ptr<WorkspaceOutbox> outbox_ =
      WorkspaceOutbox::Open(PosixFileOps(), folder_ + "/node", "n1", SystemClock()).value();
};

TEST_F(JobWorkspaceTest, WorkspaceOfACancelledContainerIsSaved) {
  Start(Plan("echo x >/state/workspace/file; trap 'exit 3' TERM; while :; do sleep 0.1; done"));
  AwaitRunning();
  process_->Stop(JobStop::kCancelled);
  const Records all = Finish();
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_CANCELLED);
  EXPECT_EQ(all.final.detail(), "");
  EXPECT_EQ(outbox_->Waiting(), std::vector<std::string>{kJob});
}

TEST_F(JobWorkspaceTest, CancelledContainerTellsWhyItsWorkspaceIsNotSaved) {
  Start(
      Plan("trap 'truncate -s 2G /state/workspace/file; exit' TERM; echo ready;"
           "while :; do sleep 0.1; done"));
  ASSERT_TRUE(testing::Await([&] { return job_->log()->content().out.bytes > 0; }));
  process_->Stop(JobStop::kCancelled);
  const Records all = Finish();
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_CANCELLED);
  EXPECT_THAT(all.final.detail(), HasSubstr("the workspace has more than 1024 MiB"));
  EXPECT_TRUE(outbox_->Waiting().empty());
}

// The container's secrets would stay in memory, and its place would stay taken.
TEST_F(JobWorkspaceTest, WorkspaceThatDoesNotFitOnTheDiskIsGivenUpAfterATime) {
  const std::string disk = folder_ + "/small";
  std::filesystem::create_directory(disk);
  ASSERT_EQ(mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=256k"), 0) << strerror(errno);
  const absl::Cleanup unmount = [&] { umount2(disk.c_str(), MNT_DETACH); };
  const auto outbox = WorkspaceOutbox::Open(PosixFileOps(), disk, "n1", SystemClock()).value();
  workspaces_ = outbox.get();
  save_within_ = absl::Milliseconds(100);
  const Records all = Run(Plan("head -c 1000000 /dev/urandom >/state/workspace/file"));
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_FAILED);
  EXPECT_EQ(all.final.reason(), "WORKSPACE_NOT_SAVED");
  EXPECT_THAT(all.final.detail(), HasSubstr("for 100ms: "));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/" + kJob + "/workspace/file"));
}

}  // namespace
}  // namespace muster
