#include "services/jobs/workspace_archives.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/jobs/testing/workspace_fixture.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

using testing::DigestOf;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class WorkspaceArchivesTest : public testing::WorkspaceFixture {};

TEST_F(WorkspaceArchivesTest, SavedVersionIsReadByTheNextDeploymentOfItsNodeAlone) {
  ASSERT_TRUE(Deploy("d1").ok());
  const auto report = Report("d1", large_);
  ASSERT_TRUE(Save(report, large_).ok());
  EXPECT_EQ(Get().state(), v1::WORKSPACE_STATE_FREE);
  EXPECT_EQ(Get().latest(), 1);
  EXPECT_TRUE(Save(report, large_).ok());  // the answer was lost
  EXPECT_EQ(Get().versions_size(), 1);
  End("d1", &report.workspace());
  EXPECT_EQ(Get().state(), v1::WORKSPACE_STATE_FREE);
  ASSERT_TRUE(Deploy("d2").ok());
  EXPECT_EQ(*ReadAll("d2", DigestOf(large_)), large_);
  EXPECT_EQ(ReasonOf(ReadAll("d2", DigestOf(large_), "n2").status()), "CONTENT_NOT_FOUND");
  EXPECT_EQ(ReasonOf(ReadAll("d1", DigestOf(large_)).status()), "CONTENT_NOT_FOUND");
  EXPECT_EQ(ReasonOf(archives_->reader().Read("d2", "n1", DigestOf(large_), 1 << 30, 1).status()),
            "OFFSET_TOO_HIGH");
}

TEST_F(WorkspaceArchivesTest, OneDeploymentAtATimeHasIt) {
  ASSERT_TRUE(Deploy("d1").ok());
  EXPECT_EQ(ReasonOf(Deploy("d2")), "WORKSPACE_IN_USE");
  v1::Command::WorkspaceReference named;
  named.set_workspace("w");
  EXPECT_EQ(ReasonOf(DeployWith("d2", named)), "WORKSPACE_IN_USE");
  EXPECT_TRUE(Deploy("d3", "other").ok());
  const auto foreign = Report("d2", large_);
  EXPECT_EQ(ReasonOf(Save(foreign, large_)), "WORKSPACE_LOST");
  auto other_node = Report("d1", large_);
  other_node.set_node("n2");
  EXPECT_EQ(ReasonOf(Save(other_node, large_)), "WORKSPACE_LOST");
  EXPECT_EQ(ReasonOf(Unlock("")), "WORKSPACE_IN_USE");
  ASSERT_TRUE(Save(Report("d1", large_), large_).ok());
  EXPECT_EQ(ReasonOf(DeployWith("d2", named)), "WORKSPACE_CHANGED");
  EXPECT_TRUE(Deploy("d2").ok());
}

TEST_F(WorkspaceArchivesTest, UploadIsResumedAfterARestartAndAtAnyPoint) {
  ASSERT_TRUE(Deploy("d1").ok());
  const auto report = Report("d1", large_);
  ASSERT_EQ(SavePart(report, large_, 0)->offset(), static_cast<int64_t>(kWorkspacePart));
  EXPECT_EQ(SavePart(report, large_, 0)->offset(), static_cast<int64_t>(kWorkspacePart));
  Open();
  EXPECT_EQ(SavePart(report, large_, 0, 0)->offset(), static_cast<int64_t>(kWorkspacePart));
  ASSERT_TRUE(Save(report, large_).ok());
  Open();
  ASSERT_TRUE(Deploy("d2").ok());
  EXPECT_EQ(*ReadAll("d2", DigestOf(large_)), large_);
}

TEST_F(WorkspaceArchivesTest, OtherBytesThanTheSignedOnesAreRemoved) {
  ASSERT_TRUE(Deploy("d1").ok());
  const auto report = Report("d1", large_);
  const std::string forged = std::string(2 * kWorkspacePart, 'b') + "the end";
  EXPECT_EQ(ReasonOf(Save(report, forged)), "DIGEST_MISMATCH");
  EXPECT_EQ(Get().latest(), 0);
  EXPECT_TRUE(Save(report, large_).ok());
  v1::SaveWorkspaceRequest damaged;
  *damaged.mutable_report() = Report("d1", "x");
  damaged.set_data("x");
  EXPECT_EQ(ReasonOf(archives_->Save(damaged).status()), "CRC_MISMATCH");
  EXPECT_EQ(ReasonOf(SavePart(report, large_, 1).status()), "INVALID_WORKSPACE");
  EXPECT_EQ(ReasonOf(SavePart(report, large_, 0, 5).status()), "INVALID_WORKSPACE");
}

// The signature of the node does not cover the offset.
TEST_F(WorkspaceArchivesTest, OffsetOutsideOfTheArchiveIsRefused) {
  ASSERT_TRUE(Deploy("d1").ok());
  constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
  v1::SaveWorkspaceRequest request;
  *request.mutable_report() = Report("d1", "x");
  for (const int64_t offset : {kLowest, int64_t{-1}, int64_t{2}}) {
    request.set_offset(offset);
    EXPECT_EQ(ReasonOf(archives_->Save(request).status()), "INVALID_WORKSPACE") << offset;
  }
  request.set_offset(1);
  request.mutable_report()->mutable_workspace()->set_size(kLowest);
  EXPECT_EQ(ReasonOf(archives_->Save(request).status()), "INVALID_WORKSPACE");
}

// An upload is complete after up to a gigabyte was hashed. Here it waits for the disk instead.
TEST_F(WorkspaceArchivesTest, SweepDoesNotWaitForAnUpload) {
  ASSERT_TRUE(Deploy("d1").ok());
  const auto report = Report("d1", "archive");
  std::atomic<bool> writes = false;
  std::atomic<bool> released = false;
  const auto hold = [&](sqlite::Connection&) {
    writes = true;
    EXPECT_TRUE(testing::Await([&] { return released.load(); }));
    return absl::OkStatus();
  };
  std::thread writer([&] { EXPECT_TRUE(database_->Write(hold).ok()); });
  EXPECT_TRUE(testing::Await([&] { return writes.load(); }));
  std::thread upload([&] { EXPECT_TRUE(SavePart(report, "archive", 0)->saved()); });
  EXPECT_TRUE(testing::Await([&] { return database_->waiting() > 0; }));
  std::atomic<bool> swept = false;
  std::thread sweep([&] {
    archives_->Sweep();
    swept = true;
  });
  EXPECT_TRUE(testing::Await([&] { return swept.load(); }, absl::Seconds(20)));
  released = true;
  for (std::thread* each : {&writer, &upload, &sweep}) each->join();
  EXPECT_EQ(Get().latest(), 1);
}

TEST_F(WorkspaceArchivesTest, OutcomeDecidesWhetherItIsFreeSavingOrSuspect) {
  const auto report = Report("d1", large_);
  ASSERT_TRUE(Deploy("d1").ok());
  End("d1", &report.workspace());
  EXPECT_EQ(Get().state(), v1::WORKSPACE_STATE_SAVING);
  EXPECT_EQ(ReasonOf(Deploy("d2")), "WORKSPACE_IN_USE");
  ASSERT_TRUE(Save(report, large_).ok());
  ASSERT_TRUE(Deploy("d2").ok());
  End("d2", nullptr, v1::JOB_OUTCOME_REFUSED);
  EXPECT_EQ(Get().state(), v1::WORKSPACE_STATE_FREE);
  ASSERT_TRUE(Deploy("d3").ok());
  const auto third = Report("d3", large_ + "3", 1);
  End("d3", &third.workspace(), v1::JOB_OUTCOME_EXITED, /*verified=*/false);
  EXPECT_EQ(Get().state(), v1::WORKSPACE_STATE_SUSPECT);
  EXPECT_EQ(ReasonOf(Deploy("d4")), "WORKSPACE_SUSPECT");
  ASSERT_TRUE(Save(third, large_ + "3").ok());  // late
  EXPECT_EQ(Get().latest(), 2);
  ASSERT_TRUE(Deploy("d4").ok());
  const auto same = Report("d4", large_ + "3", 2);
  End("d4", nullptr, v1::JOB_OUTCOME_TIMED_OUT);
  EXPECT_EQ(Get().state(), v1::WORKSPACE_STATE_SUSPECT);
  ASSERT_TRUE(Save(same, large_ + "3").ok());  // the container has changed nothing
  EXPECT_EQ(Get().state(), v1::WORKSPACE_STATE_FREE);
  EXPECT_EQ(Get().latest(), 2);
  EXPECT_TRUE(Save(same, large_ + "3").ok());
  ASSERT_TRUE(Deploy("d5").ok());
  const auto fifth = Report("d5", large_ + "3", 2);
  End("d5", &fifth.workspace(), v1::JOB_OUTCOME_CANCELLED);
  EXPECT_EQ(Get().state(), v1::WORKSPACE_STATE_FREE);
}

TEST_F(WorkspaceArchivesTest, UnlockedWorkspaceRefusesTheLateVersion) {
  ASSERT_TRUE(Deploy("d1").ok());
  ASSERT_TRUE(Save(Report("d1", large_), large_).ok());
  ASSERT_TRUE(Deploy("d2").ok());
  const auto late = Report("d2", large_ + "2", 1);
  ASSERT_TRUE(SavePart(late, large_ + "2", 0).ok());
  End("d2", nullptr, v1::JOB_OUTCOME_TIMED_OUT);
  EXPECT_EQ(ReasonOf(workspaces_->Restore("w", 1, {"ann"}, clock_.Now())), "WORKSPACE_SUSPECT");
  EXPECT_EQ(ReasonOf(Unlock("d1")), "WORKSPACE_IN_USE");
  EXPECT_EQ(std::string(Unlock("d1").message()), "deployment d2 has the workspace \"w\", not d1");
  EXPECT_THAT(AuditRecords(), IsEmpty()) << "nothing has changed";
  ASSERT_TRUE(Unlock("d2").ok());
  EXPECT_TRUE(Unlock("").ok());
  EXPECT_THAT(AuditRecords(),
              ElementsAre("w: ann via gateway unlocked, taken from deployment d2 on node n1"));
  EXPECT_EQ(ReasonOf(Save(late, large_ + "2")), "WORKSPACE_LOST");
  EXPECT_EQ(Get().latest(), 1);
  clock_.Advance(absl::Minutes(1));
  archives_->Sweep();  // closes the upload
  archives_->Sweep();
  EXPECT_EQ(workspaces_->Usage(), static_cast<int64_t>(large_.size()));
}

TEST_F(WorkspaceArchivesTest, OldVersionsAreRemovedAndAnOlderOneIsRestored) {
  for (int64_t i = 0; i < kMaxWorkspaceVersions + 2; ++i) {
    const std::string id = absl::StrCat("d", i);
    const std::string archive = absl::StrCat("content ", i);
    ASSERT_TRUE(Deploy(id).ok()) << i;
    ASSERT_TRUE(Save(Report(id, archive, i), archive).ok()) << i;
  }
  EXPECT_EQ(Get().versions_size(), kMaxWorkspaceVersions);
  archives_->Sweep();
  EXPECT_EQ(Blobs(), static_cast<size_t>(kMaxWorkspaceVersions));
  const ChangeOrigin ann{"ann", "gateway"};
  EXPECT_EQ(ReasonOf(workspaces_->Restore("w", 2, ann, clock_.Now())),
            "WORKSPACE_VERSION_NOT_FOUND");
  ASSERT_TRUE(workspaces_->Restore("w", 4, ann, clock_.Now()).ok());
  ASSERT_TRUE(workspaces_->Restore("w", 4, ann, clock_.Now()).ok());  // repeated
  EXPECT_EQ(Get().versions(0).restored_by(), "ann");
  EXPECT_THAT(AuditRecords(), ElementsAre("w: ann via gateway restored, version 4, as version 13"));
  EXPECT_EQ(Get().latest(), kMaxWorkspaceVersions + 3);
  EXPECT_EQ(Get().versions(0).restored_from(), 4);
  archives_->Sweep();
  Open();
  ASSERT_TRUE(Deploy("e").ok());
  EXPECT_EQ(*ReadAll("e", DigestOf("content 3")), "content 3");
}

TEST_F(WorkspaceArchivesTest, QuotaAndNumberOfWorkspacesAreBounded) {
  limits_.quota = static_cast<int64_t>(large_.size()) + 10;
  Open();
  ASSERT_TRUE(Deploy("d1").ok());
  ASSERT_TRUE(Save(Report("d1", large_), large_).ok());
  ASSERT_TRUE(Deploy("d2").ok());
  EXPECT_EQ(ReasonOf(Save(Report("d2", large_ + "2", 1), large_ + "2")), "WORKSPACE_QUOTA");
  limits_.quota = static_cast<int64_t>(large_.size());
  Open();
  EXPECT_EQ(ReasonOf(Deploy("d3", "other")), "WORKSPACE_QUOTA");
  limits_ = WorkspaceLimits();
  Open();
  const DeploymentStore::Limits many{.max_open = 10'000};
  deployments_ = std::make_unique<DeploymentStore>(*database_, many);
  for (int64_t i = 1; i < kMaxWorkspaces; ++i) {
    ASSERT_TRUE(Deploy(absl::StrCat("m", i), absl::StrCat("w", i)).ok()) << i;
  }
  EXPECT_EQ(ReasonOf(Deploy("x", "another")), "TOO_MANY_WORKSPACES");
}

TEST_F(WorkspaceArchivesTest, DamagedArchiveIsReported) {
  ASSERT_TRUE(Deploy("d1").ok());
  ASSERT_TRUE(Save(Report("d1", large_), large_).ok());
  ASSERT_TRUE(Deploy("d2").ok());
  for (const auto& entry : fs::recursive_directory_iterator(folder_ + "/workspaces/blobs")) {
    if (!entry.is_regular_file()) continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(100);
    file.put('x');
  }
  EXPECT_EQ(ReasonOf(ReadAll("d2", DigestOf(large_)).status()), "WORKSPACE_DAMAGED");
}

}  // namespace
}  // namespace muster
