#include "services/jobs/deployment_audit.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/v1/audit.pb.h"
#include "muster/v1/deployments.pb.h"
#include "services/common/base/error.h"
#include "services/common/rpc/proto_time.h"
#include "services/jobs/audit_outbox.h"
#include "services/jobs/deployment_store.h"
#include "services/jobs/jobs_schema.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class DeploymentAuditTest : public ::testing::Test {
 protected:
  DeploymentAuditTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    database_ = sqlite::LocalDatabase::Open(folder_ + "/jobs.db", kJobsSchema).value();
    store_ = std::make_unique<DeploymentStore>(*database_);
  }

  v1::Deployment Message(const std::string& id) const {
    v1::Deployment message;
    message.set_deployment(id);
    message.set_job(absl::StrCat("job-", id));
    message.set_created_by("ann");
    message.set_template_("hi@1.4.0");
    message.set_action("deploy");
    ToProto(now_, message.mutable_create_time());
    return message;
  }

  absl::Status Create(const v1::Deployment& message, const v1::CreateDeploymentRequest& request) {
    return store_
        ->Create(
            message, request, [](const DeploymentSource&) { return absl::OkStatus(); }, "gateway")
        .status();
  }

  // Returns "SUBJECT: ACTOR via GATEWAY EVENT, DETAIL" for each record.
  std::vector<std::string> Records() {
    std::vector<std::string> texts;
    const auto records = AuditOutbox(*database_).List(100).value();
    for (const AuditOutbox::Record& record : records) {
      const v1::RecordServiceChangeRequest& change = record.request;
      EXPECT_EQ(change.kind(), v1::AUDIT_KIND_DEPLOYMENT);
      EXPECT_EQ(FromProto(change.time()), now_);
      texts.push_back(absl::StrCat(change.subject(), ": ", change.actor(), " via ",
                                   change.vouched_by(), " ", change.event(), ", ",
                                   change.detail()));
    }
    return texts;
  }

  const std::string folder_ = ::testing::TempDir() + "/deployment_audit";
  const absl::Time now_ = absl::FromUnixMicros(1'750'000'000'123'456);
  std::unique_ptr<sqlite::LocalDatabase> database_;
  std::unique_ptr<DeploymentStore> store_;
};

TEST_F(DeploymentAuditTest, CreationIsRecordedOnceWithItsOptions) {
  v1::CreateDeploymentRequest request;
  ASSERT_TRUE(Create(Message("d1"), request).ok());
  ASSERT_TRUE(Create(Message("d1"), request).ok()) << "repeated";
  v1::Deployment retry = Message("d2");
  retry.set_retry_of("d1");
  retry.mutable_workspace()->set_workspace("net-a");
  request.add_nodes("n1");
  request.set_skip_conformance(true);
  ASSERT_TRUE(Create(retry, request).ok());
  v1::Deployment destruction = Message("d3");
  destruction.clear_template_();
  destruction.set_type("site@1.0.0");
  destruction.set_action("destroy");
  destruction.set_destroys("d1");
  request.clear_skip_conformance();
  request.add_nodes("n2");
  ASSERT_TRUE(Create(destruction, request).ok());
  EXPECT_THAT(Records(),
              ElementsAre("d1: ann via gateway created, hi@1.4.0, action deploy, for all nodes",
                          "d2: ann via gateway created, hi@1.4.0, action deploy, for 1 node, with "
                          "workspace net-a, a retry of d1, without the check of conformance",
                          "d3: ann via gateway created, site@1.0.0, action destroy, for 2 nodes, "
                          "which destroys d1"));
}

TEST_F(DeploymentAuditTest, RefusedCreationIsNotRecorded) {
  v1::Deployment retry = Message("d2");
  retry.set_retry_of("d1");
  EXPECT_EQ(ReasonOf(Create(retry, {})), "DEPLOYMENT_NOT_FOUND");
  EXPECT_THAT(Records(), IsEmpty());
}

TEST_F(DeploymentAuditTest, FirstCancellationIsRecorded) {
  ASSERT_TRUE(store_->Create(Message("d1"), {}).ok());
  ASSERT_TRUE(store_->BeginSubmission("d1").ok());
  ASSERT_TRUE(store_->RequestCancel("d1", {"bob", "gateway"}, now_).ok());
  ASSERT_TRUE(store_->RequestCancel("d1", {"eve"}, now_).ok());
  EXPECT_THAT(Records(), ElementsAre("d1: ann via  created, hi@1.4.0, action deploy, for all nodes",
                                     "d1: bob via gateway cancelled, "));
}

}  // namespace
}  // namespace muster
