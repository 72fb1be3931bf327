#include "services/agent/jobs/workspace_outbox.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/fake_clock.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr char kJob[] = "0123456789abcdef0123456789abcdef";

class WorkspaceOutboxTest : public ::testing::Test {
 protected:
  WorkspaceOutboxTest() {
    fs::remove_all(folder_);
    fs::create_directories(content_);
    std::ofstream(content_ + "/file") << "content";
    named_.set_workspace("w");
    named_.set_version(3);
    Open();
  }
  ~WorkspaceOutboxTest() override { fs::remove_all(folder_); }

  // Opens the outbox as a new process does.
  void Open() { outbox_ = WorkspaceOutbox::Open(PosixFileOps(), folder_, "n1", clock_).value(); }
  absl::StatusOr<v1::JobRecord::Workspace> Save() { return outbox_->Save(kJob, named_, content_); }

  const std::string folder_ = ::testing::TempDir() + "/workspace-outbox";
  const std::string content_ = folder_ + "/content";
  v1::Command::WorkspaceReference named_;
  FakeClock clock_{absl::Now()};
  std::unique_ptr<WorkspaceOutbox> outbox_;
};

TEST_F(WorkspaceOutboxTest, SavedWorkspaceSurvivesTheProcessAndIsNotPackedAgain) {
  EXPECT_FALSE(outbox_->AwaitWaiting(absl::ZeroDuration()));
  const auto saved = Save();
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(saved->workspace(), "w");
  EXPECT_EQ(saved->version(), 3);
  Open();
  fs::remove_all(content_);
  EXPECT_EQ(Save()->SerializeAsString(), saved->SerializeAsString());
  EXPECT_EQ(outbox_->Waiting(), std::vector<std::string>{kJob});
  EXPECT_TRUE(outbox_->AwaitWaiting(absl::InfiniteDuration()));
  const auto report = outbox_->Report(kJob);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->node(), "n1");
  EXPECT_EQ(report->job(), kJob);
  EXPECT_EQ(static_cast<int64_t>(outbox_->ReadPart(kJob, 0)->size()), saved->size());
  ASSERT_TRUE(outbox_->Remove(kJob).ok());
  EXPECT_TRUE(outbox_->Waiting().empty());
  EXPECT_EQ(ReasonOf(Save().status()), "WORKSPACE_NOT_SAVED");  // its folder is removed
  Open();
  EXPECT_TRUE(outbox_->Waiting().empty());
}

TEST_F(WorkspaceOutboxTest, PartialArchivesOfAKilledProcessAreRemoved) {
  const std::string partial = folder_ + "/workspaces/" + kJob + ".partial";
  fs::create_directories(partial);
  std::ofstream(partial + "/archive") << "half";
  Open();
  EXPECT_TRUE(outbox_->Waiting().empty());
  EXPECT_FALSE(fs::exists(partial));
  EXPECT_TRUE(Save().ok());
}

TEST_F(WorkspaceOutboxTest, RefusedArchiveIsKeptForADay) {
  ASSERT_TRUE(Save().ok());
  ASSERT_TRUE(outbox_->Refuse(kJob).ok());
  EXPECT_TRUE(outbox_->Waiting().empty());
  const std::string refused = folder_ + "/workspaces-refused/" + kJob + "/archive";
  outbox_->ForgetRefused();
  EXPECT_TRUE(fs::exists(refused));
  Open();
  EXPECT_TRUE(outbox_->Waiting().empty());
  clock_.Advance(kRefusedWorkspaceKept + absl::Minutes(1));
  outbox_->ForgetRefused();
  EXPECT_FALSE(fs::exists(refused));
}

TEST_F(WorkspaceOutboxTest, WaitingBytesAreBounded) {
  ASSERT_TRUE(Save().ok());
  EXPECT_TRUE(outbox_->CheckRoom().ok());
  fs::resize_file(folder_ + "/workspaces/" + kJob + "/archive", kMaxWaitingWorkspaces);
  Open();
  EXPECT_EQ(ReasonOf(outbox_->CheckRoom()), "WORKSPACE_UNAVAILABLE");
}

TEST_F(WorkspaceOutboxTest, WakeEndsAWait) {
  outbox_->Wake();
  EXPECT_FALSE(outbox_->AwaitWaiting(absl::InfiniteDuration()));
}

}  // namespace
}  // namespace muster
