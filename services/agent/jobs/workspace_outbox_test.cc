#include "services/agent/jobs/workspace_outbox.h"

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/simulated_disk.h"

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
  absl::StatusOr<v1::JobRecord::Workspace> Save() {
    return outbox_->Save(kJob, named_, content_, [] { return false; });
  }

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

TEST_F(WorkspaceOutboxTest, OldestRefusedArchivesBeyondTheLimitAreRemoved) {
  const std::string refused = folder_ + "/workspaces-refused/";
  for (const char* name : {"oldest", "newer"}) {
    fs::create_directories(refused + name);
    std::ofstream(refused + name + "/archive") << "";
    fs::resize_file(refused + name + "/archive", kMaxRefusedWorkspaces / 2);
    // Without a mark: the agent was killed before it wrote one.
    fs::last_write_time(refused + name, fs::file_time_type::clock::now() -
                                            std::chrono::hours(*name == 'o' ? 2 : 1));
  }
  outbox_->ForgetRefused();
  EXPECT_TRUE(fs::exists(refused + "oldest"));
  ASSERT_TRUE(Save().ok());
  ASSERT_TRUE(outbox_->Refuse(kJob).ok());
  EXPECT_FALSE(fs::exists(refused + "oldest"));
  EXPECT_TRUE(fs::exists(refused + "newer"));
  EXPECT_TRUE(fs::exists(refused + kJob));
  clock_.Advance(kRefusedWorkspaceKept - absl::Minutes(30));
  outbox_->ForgetRefused();
  EXPECT_FALSE(fs::exists(refused + "newer"));
  EXPECT_TRUE(fs::exists(refused + kJob));
}

TEST_F(WorkspaceOutboxTest, NameThatIsNotDurableIsNotPackedAgain) {
  bool failed = false;
  for (int n = 1; n <= 10; ++n) {
    SimulatedDisk disk;
    ASSERT_TRUE(MakeFolders(disk, "/node").ok());
    const auto outbox = WorkspaceOutbox::Open(disk, "/node", "n1", clock_).value();
    disk.FailAt(SimulatedDisk::Call::kSyncFolder, n, EIO);
    const auto save = [&](const std::string& folder) {
      return outbox->Save(kJob, named_, folder, [] { return false; });
    };
    auto saved = save(content_);
    const std::string name = absl::StrCat("/node/workspaces/", kJob);
    if (saved.ok() || !disk.Stat(name).ok()) continue;
    failed = true;
    EXPECT_TRUE(outbox->Waiting().empty());
    saved = save(folder_ + "/removed");
    ASSERT_TRUE(saved.ok()) << saved.status();
    EXPECT_EQ(outbox->Waiting(), std::vector<std::string>{kJob});
    EXPECT_TRUE(disk.HasDurableName(name + "/report"));
  }
  EXPECT_TRUE(failed);
}

TEST_F(WorkspaceOutboxTest, DamagedReportAndShortArchiveAreNeverSent) {
  ASSERT_TRUE(Save().ok());
  const std::string archive = folder_ + "/workspaces/" + kJob + "/archive";
  fs::resize_file(archive, fs::file_size(archive) - 1);
  EXPECT_EQ(ReasonOf(outbox_->Report(kJob).status()), "WORKSPACE_NOT_SAVED");
  fs::remove(archive);
  EXPECT_EQ(ReasonOf(outbox_->Report(kJob).status()), "WORKSPACE_NOT_SAVED");
  std::ofstream(folder_ + "/workspaces/" + kJob + "/report") << "damaged";
  EXPECT_EQ(ReasonOf(outbox_->Report(kJob).status()), "WORKSPACE_NOT_SAVED");
  fs::remove_all(folder_ + "/workspaces/" + kJob);
  EXPECT_EQ(ReasonOf(outbox_->Report(kJob).status()), "WORKSPACE_NOT_SAVED");
  EXPECT_TRUE(outbox_->Refuse(kJob).ok());
  EXPECT_TRUE(outbox_->Waiting().empty());
}

TEST_F(WorkspaceOutboxTest, PartThatCannotBeRemovedDoesNotPreventTheStart) {
  SimulatedDisk disk;
  const std::string partial = absl::StrCat("/node/workspaces/", kJob, ".partial");
  ASSERT_TRUE(MakeFolders(disk, partial).ok());
  disk.FailAt(SimulatedDisk::Call::kRemove, 1, EBUSY);
  const auto outbox = WorkspaceOutbox::Open(disk, "/node", "n1", clock_);
  ASSERT_TRUE(outbox.ok()) << outbox.status();
  EXPECT_TRUE(disk.Stat(partial).ok()) << "the removal did not fail";
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
