// The stores of workspaces and deployments in one database, for tests.
#ifndef MUSTER_SERVICES_JOBS_TESTING_WORKSPACE_FIXTURE_H_
#define MUSTER_SERVICES_JOBS_TESTING_WORKSPACE_FIXTURE_H_

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/v1/deployments.pb.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/sha256.h"
#include "services/common/rpc/proto_time.h"
#include "services/jobs/audit_outbox.h"
#include "services/jobs/deployment_store.h"
#include "services/jobs/jobs_schema.h"
#include "services/jobs/workspace_archives.h"
#include "services/jobs/workspace_store.h"

namespace muster::testing {

inline std::string DigestOf(const std::string& bytes) { return DigestBytes(Sha256::Of(bytes)); }

class WorkspaceFixture : public ::testing::Test {
 protected:
  WorkspaceFixture() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    Open();
  }
  ~WorkspaceFixture() override {
    archives_.reset();
    std::filesystem::remove_all(folder_);
  }

  // Opens the stores as a new process does.
  void Open() {
    archives_.reset();
    workspaces_.reset();
    deployments_.reset();
    database_.reset();
    database_ = sqlite::LocalDatabase::Open(folder_ + "/jobs.db", kJobsSchema).value();
    deployments_ = std::make_unique<DeploymentStore>(*database_);
    workspaces_ = std::make_unique<WorkspaceStore>(*database_, limits_.quota);
    auto archives =
        WorkspaceArchives::Open(*database_, KeyWrap::OpenOrCreate(folder_ + "/store.key").value(),
                                folder_ + "/workspaces", limits_, clock_);
    ASSERT_TRUE(archives.ok()) << archives.status();
    archives_ = *std::move(archives);
  }

  absl::Status Unlock(const std::string& deployment) {
    return workspaces_->Unlock("w", deployment, {"ann", "gateway"}, clock_.Now());
  }

  absl::Status Delete(const std::string& deployment = "") {
    return workspaces_->Delete("w", deployment, {"ann", "gateway"}, clock_.Now()).status();
  }

  // Returns "SUBJECT: ACTOR via GATEWAY EVENT, DETAIL" for each record about a workspace.
  std::vector<std::string> AuditRecords() {
    std::vector<std::string> texts;
    const auto records = AuditOutbox(*database_).List(1'000).value();
    for (const AuditOutbox::Record& record : records) {
      const v1::RecordServiceChangeRequest& change = record.request;
      if (change.kind() != v1::AUDIT_KIND_WORKSPACE) continue;
      texts.push_back(absl::StrCat(change.subject(), ": ", change.actor(), " via ",
                                   change.vouched_by(), " ", change.event(), ", ",
                                   change.detail()));
    }
    return texts;
  }

  // Creates a deployment on n1 with the newest version of the workspace.
  absl::Status Deploy(const std::string& id, const std::string& workspace = "w") {
    auto newest = workspaces_->Newest(workspace);
    if (!newest.ok()) return newest.status();
    return DeployWith(id, *newest);
  }
  absl::Status DeployWith(const std::string& id, const v1::Command::WorkspaceReference& named) {
    v1::Deployment message;
    message.set_deployment(id);
    message.set_job("job-" + id);
    message.set_created_by("ann");
    *message.mutable_workspace() = named;
    ToProto(clock_.Now(), message.mutable_create_time());
    v1::CreateDeploymentRequest request;
    request.add_nodes("n1");
    request.mutable_command()->set_command(id);
    return deployments_->Create(message, request).status();
  }

  v1::WorkspaceReport Report(const std::string& id, const std::string& archive,
                             int64_t version = 0) {
    v1::WorkspaceReport report;
    report.set_job("job-" + id);
    report.set_node("n1");
    report.mutable_workspace()->set_workspace("w");
    report.mutable_workspace()->set_version(version);
    report.mutable_workspace()->set_sha256(DigestOf(archive));
    report.mutable_workspace()->set_size(static_cast<int64_t>(archive.size()));
    return report;
  }
  absl::StatusOr<v1::SaveWorkspaceResponse> SavePart(const v1::WorkspaceReport& report,
                                                     const std::string& archive, int64_t offset,
                                                     size_t size = kWorkspacePart) {
    v1::SaveWorkspaceRequest request;
    *request.mutable_report() = report;
    request.set_offset(offset);
    request.set_data(archive.substr(static_cast<size_t>(offset), size));
    request.set_crc32c(Crc32c(request.data()));
    return archives_->Save(request);
  }
  // Sends all parts that are missing.
  absl::Status Save(const v1::WorkspaceReport& report, const std::string& archive) {
    auto response = SavePart(report, archive, 0, 0);
    while (response.ok() && !response->saved()) {
      response = SavePart(report, archive, response->offset());
    }
    return response.status();
  }
  // Handles the records of the deployment's job, and its end.
  void End(const std::string& id, const v1::JobRecord::Workspace* saved,
           v1::JobOutcome outcome = v1::JOB_OUTCOME_EXITED, bool verified = true) {
    v1::WatchJobResponse response;
    const auto add = [&]() -> v1::JobRecord& {
      v1::JobRecord& record = *response.add_records();
      record.set_node("n1");
      return record;
    };
    ToProto(clock_.Now(), add().mutable_started()->mutable_time());
    if (saved != nullptr) *add().mutable_workspace() = *saved;
    v1::JobRecord& final = add();
    final.mutable_final()->set_outcome(outcome);
    final.mutable_final()->set_records_verified(verified);
    EXPECT_TRUE(deployments_->AddRecords(id, response, nullptr).ok());
    v1::Job job;
    job.set_targets(1);
    EXPECT_TRUE(deployments_->EndWithJob(id, job).ok());
  }
  v1::Workspace Get() { return workspaces_->Get("w").value_or(v1::Workspace()); }
  absl::StatusOr<std::string> ReadAll(const std::string& id, const std::string& sha256,
                                      const std::string& node = "n1") {
    std::string all;
    for (;;) {
      const auto part =
          archives_->reader().Read(id, node, sha256, static_cast<int64_t>(all.size()), 100'000);
      if (!part.ok()) return part.status();
      if (part->data.empty()) return all;
      all += part->data;
    }
  }
  size_t Blobs() {
    size_t count = 0;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(folder_ + "/workspaces/blobs")) {
      count += entry.is_regular_file() ? 1 : 0;
    }
    return count;
  }

  const std::string folder_ = ::testing::TempDir() + "/workspaces";
  const std::string large_ = std::string(2 * kWorkspacePart, 'a') + "the end";
  WorkspaceLimits limits_;
  FakeClock clock_;
  std::unique_ptr<sqlite::LocalDatabase> database_;
  std::unique_ptr<DeploymentStore> deployments_;
  std::unique_ptr<WorkspaceStore> workspaces_;
  std::unique_ptr<WorkspaceArchives> archives_;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_JOBS_TESTING_WORKSPACE_FIXTURE_H_
