#include "services/jobs/deleted_workspaces.h"

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/jobs/deployment_successor.h"
#include "services/jobs/testing/workspace_fixture.h"

namespace muster {
namespace {

using testing::DigestOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DeletedWorkspacesTest : public testing::WorkspaceFixture {
 protected:
  // The workspace "w" has one version, with this content.
  void SaveFirst(const std::string& archive) {
    ASSERT_TRUE(Deploy("d1").ok());
    const auto report = Report("d1", archive);
    ASSERT_TRUE(Save(report, archive).ok());
    End("d1", &report.workspace());
  }

  v1::Deployment Show(const std::string& id) {
    v1::Deployment shown = deployments_->Get(id).value();
    EXPECT_TRUE(deployments_->AddNodes("", 10, 1 << 20, &shown).ok());
    return shown;
  }
};

TEST_F(DeletedWorkspacesTest, DeletionRemovesVersionsArchivesAndBytesAndSurvivesAKill) {
  ASSERT_NO_FATAL_FAILURE(SaveFirst(large_));
  ASSERT_TRUE(Delete().ok());
  EXPECT_THAT(AuditRecords(), ElementsAre(absl::StrCat(
                                  "w: ann via gateway deleted, 1 version, the newest is 1 with "
                                  "SHA-256 ",
                                  absl::BytesToHexString(DigestOf(large_)))));
  EXPECT_EQ(workspaces_->Usage(), 0);
  EXPECT_EQ(Blobs(), 1U) << "archives are removed after the answer";
  Open();  // as after a kill
  std::string next;
  EXPECT_THAT(workspaces_->List("", 10, &next).value(), IsEmpty());
  EXPECT_EQ(ReasonOf(workspaces_->Get("w").status()), "WORKSPACE_NOT_FOUND");
  EXPECT_EQ(ReasonOf(workspaces_->Restore("w", 1, {"ann"}, clock_.Now())), "WORKSPACE_NOT_FOUND");
  EXPECT_EQ(ReasonOf(Unlock("")), "WORKSPACE_NOT_FOUND");
  EXPECT_EQ(ReasonOf(Delete()), "WORKSPACE_NOT_FOUND");
  EXPECT_EQ(AuditRecords().size(), 1U);
  archives_->Sweep();
  EXPECT_EQ(Blobs(), 0U);
}

TEST_F(DeletedWorkspacesTest, WorkspaceOfADeploymentIsOnlyDeletedIfItHasEndedAndIsNamed) {
  ASSERT_TRUE(Deploy("d1").ok());
  EXPECT_EQ(ReasonOf(Delete()), "WORKSPACE_IN_USE");
  EXPECT_EQ(ReasonOf(Delete("d1")), "WORKSPACE_IN_USE") << "it has not ended";
  const auto first = Report("d1", large_);
  End("d1", &first.workspace());
  ASSERT_EQ(Get().state(), v1::WORKSPACE_STATE_SAVING);
  EXPECT_EQ(ReasonOf(Delete()), "WORKSPACE_IN_USE");
  EXPECT_THAT(NextStepOf(Delete()), HasSubstr("muster workspace delete w --deployment d1."));
  ASSERT_TRUE(Save(first, large_).ok());
  ASSERT_TRUE(Deploy("d2").ok());
  End("d2", nullptr, v1::JOB_OUTCOME_TIMED_OUT);
  ASSERT_EQ(Get().state(), v1::WORKSPACE_STATE_SUSPECT);
  EXPECT_EQ(ReasonOf(Delete()), "WORKSPACE_SUSPECT");
  EXPECT_THAT(NextStepOf(Delete()), HasSubstr("muster workspace delete w --deployment d2."));
  EXPECT_EQ(std::string(Delete("d1").message()), "deployment d2 has the workspace \"w\", not d1");
  EXPECT_THAT(AuditRecords(), IsEmpty());
  EXPECT_EQ(Get().latest(), 1);
  ASSERT_TRUE(Delete("d2").ok());
  EXPECT_THAT(AuditRecords(), ElementsAre(HasSubstr("; taken from deployment d2 on node n1")));
  EXPECT_EQ(ReasonOf(workspaces_->Get("w").status()), "WORKSPACE_NOT_FOUND");
}

TEST_F(DeletedWorkspacesTest, LateVersionNeitherRevivesTheWorkspaceNorEntersALaterOne) {
  ASSERT_NO_FATAL_FAILURE(SaveFirst(large_));
  ASSERT_TRUE(Deploy("d2").ok());
  const auto late = Report("d2", large_ + "2", 1);
  ASSERT_TRUE(SavePart(late, large_ + "2", 0).ok());
  End("d2", nullptr, v1::JOB_OUTCOME_TIMED_OUT);
  ASSERT_TRUE(Delete("d2").ok());
  const absl::Status refused = Save(late, large_ + "2");
  EXPECT_EQ(ReasonOf(refused), "WORKSPACE_LOST");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("the workspace was deleted by ann at "));
  EXPECT_EQ(ReasonOf(workspaces_->Get("w").status()), "WORKSPACE_NOT_FOUND");

  ASSERT_TRUE(Deploy("d3").ok()) << "it begins empty";
  EXPECT_EQ(ReasonOf(Save(late, large_ + "2")), "WORKSPACE_LOST");
  EXPECT_EQ(Get().deployment(), "d3");
  ASSERT_TRUE(Save(Report("d3", large_), large_).ok());
  EXPECT_EQ(ReasonOf(Save(late, large_ + "2")), "WORKSPACE_LOST");
  // The version that the command of d2 named had the content of version 1 of the later workspace.
  EXPECT_EQ(ReasonOf(Save(Report("d2", large_, 1), large_)), "WORKSPACE_LOST");
  EXPECT_EQ(Get().versions_size(), 1);
  EXPECT_EQ(Get().versions(0).deployment(), "d3");
  clock_.Advance(absl::Minutes(1));
  archives_->Sweep();  // closes the upload of d2
  archives_->Sweep();
  EXPECT_EQ(workspaces_->Usage(), static_cast<int64_t>(large_.size()));
  EXPECT_EQ(Blobs(), 1U);
  ASSERT_TRUE(Deploy("d4").ok());
  EXPECT_EQ(*ReadAll("d4", DigestOf(large_)), large_);
}

TEST_F(DeletedWorkspacesTest, DeletionGivesBackTheQuota) {
  limits_.quota = static_cast<int64_t>(large_.size());
  Open();
  ASSERT_NO_FATAL_FAILURE(SaveFirst(large_));
  EXPECT_EQ(ReasonOf(Deploy("d2", "other")), "WORKSPACE_QUOTA");
  ASSERT_TRUE(Delete().ok());
  ASSERT_TRUE(Deploy("d2").ok());
  EXPECT_TRUE(Save(Report("d2", large_), large_).ok()) << "before the archive is removed";
}

TEST_F(DeletedWorkspacesTest, UnsentPartsAreRemovedToo) {
  ASSERT_TRUE(Deploy("d1").ok());
  ASSERT_TRUE(SavePart(Report("d1", large_), large_, 0).ok());
  End("d1", nullptr, v1::JOB_OUTCOME_TIMED_OUT);
  ASSERT_TRUE(Delete("d1").ok());
  Open();
  archives_->Sweep();
  EXPECT_EQ(workspaces_->Usage(), 0);
}

TEST_F(DeletedWorkspacesTest, DeploymentShowsTheDeletionAndTheRefusedVersion) {
  ASSERT_NO_FATAL_FAILURE(SaveFirst(large_));
  ASSERT_TRUE(Deploy("d2").ok());
  End("d2", nullptr, v1::JOB_OUTCOME_TIMED_OUT);
  EXPECT_FALSE(Show("d2").has_workspace_deletion());
  ASSERT_TRUE(Delete("d2").ok());
  const absl::Time deleted_at = clock_.Now();
  ASSERT_TRUE(Deploy("d3").ok());
  clock_.Advance(absl::Hours(1));
  const absl::Time refused_at = clock_.Now();
  auto late = Report("d2", large_ + "2", 1);
  ASSERT_TRUE(workspaces_->MarkRefused(late, refused_at).ok());
  ASSERT_TRUE(workspaces_->MarkRefused(late, refused_at + absl::Hours(1)).ok()) << "repeated";
  late.set_node("n2");
  ASSERT_TRUE(workspaces_->MarkRefused(late, refused_at).ok()) << "of no node of the deployment";
  ASSERT_TRUE(workspaces_->MarkRefused(Report("other", "x"), refused_at).ok());

  for (const char* id : {"d1", "d2"}) {
    const v1::Deployment shown = Show(id);
    EXPECT_EQ(shown.workspace_deletion().deleted_by(), "ann") << id;
    EXPECT_EQ(FromProto(shown.workspace_deletion().delete_time()), deleted_at) << id;
  }
  ASSERT_EQ(Show("d2").nodes_size(), 1);
  EXPECT_EQ(FromProto(Show("d2").nodes(0).workspace_refused_time()), refused_at);
  EXPECT_FALSE(Show("d1").nodes(0).has_workspace_refused_time());
  EXPECT_FALSE(Show("d3").has_workspace_deletion());
  EXPECT_EQ(ReasonOf(NodesToRetry(deployments_->GetSource("d1").value(), {}, true).status()),
            "WORKSPACE_DELETED");
  EXPECT_EQ(ReasonOf(NodesToDestroy(deployments_->GetSource("d2").value(), {}, true).status()),
            "WORKSPACE_DELETED");

  ASSERT_TRUE(Save(Report("d3", "x"), "x").ok());
  ASSERT_TRUE(
      workspaces_->Delete("w", "", {"bob"}, clock_.Now()).ok());  // the later one of the name
  EXPECT_EQ(Show("d2").workspace_deletion().deleted_by(), "ann");
  EXPECT_EQ(Show("d3").workspace_deletion().deleted_by(), "bob");
}

TEST_F(DeletedWorkspacesTest, OldestDeletionIsForgotten) {
  ASSERT_TRUE(database_
                  ->Write([](sqlite::Connection& db) {
                    for (int64_t i = 0; i < kMaxDeletedWorkspaces; ++i) {
                      db.Run("INSERT INTO deleted_workspaces VALUES (?, ?, 'ann', 0)",
                             absl::StrCat("w", i), i - kMaxDeletedWorkspaces);
                    }
                    return absl::OkStatus();
                  })
                  .ok());
  ASSERT_NO_FATAL_FAILURE(SaveFirst("x"));
  ASSERT_TRUE(Delete().ok());
  const auto count = [&](const std::string& name) {
    int64_t found = 0;
    EXPECT_TRUE(database_
                    ->Read([&](sqlite::Connection& db) {
                      sqlite::Rows rows = db.Query(
                          "SELECT count(*) FROM deleted_workspaces WHERE ? IN ('', name)", name);
                      if (rows.Next()) found = rows.Int();
                      return absl::OkStatus();
                    })
                    .ok());
    return found;
  };
  EXPECT_EQ(count(""), kMaxDeletedWorkspaces);
  EXPECT_EQ(count("w"), 1);
  EXPECT_EQ(count("w0"), 0);
  EXPECT_EQ(count("w1"), 1);
}

}  // namespace
}  // namespace muster
