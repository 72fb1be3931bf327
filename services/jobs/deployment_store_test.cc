#include "services/jobs/deployment_store.h"

#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/store/sqlite/query_plan.h"
#include "services/jobs/jobs_schema.h"
#include "services/jobs/page_size.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

class DeploymentStoreTest : public ::testing::Test {
 protected:
  DeploymentStoreTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    database_ = sqlite::LocalDatabase::Open(folder_ + "/jobs.db", kJobsSchema).value();
  }

  static absl::Status Create(DeploymentStore& store, const std::string& id,
                             const std::string& creator = "ann") {
    v1::Deployment message;
    message.set_deployment(id);
    message.set_job(absl::StrCat("job-", id));
    message.set_created_by(creator);
    message.set_state(v1::DEPLOYMENT_STATE_PENDING);
    v1::CreateDeploymentRequest request;
    request.add_nodes(id);
    return store.Create(message, request).status();
  }

  const std::string folder_ = ::testing::TempDir() + "/deployments";
  std::unique_ptr<sqlite::LocalDatabase> database_;
};

TEST_F(DeploymentStoreTest, NodesHavePages) {
  DeploymentStore store(*database_);
  ASSERT_TRUE(Create(store, "d1").ok());
  v1::WatchJobResponse response;
  response.set_position(1);
  for (const char* node : {"n3", "n1", "n2"}) {
    v1::JobRecord& record = *response.add_records();
    record.set_node(node);
    record.mutable_final()->set_detail(std::string(1'000, 'x'));
  }
  ASSERT_TRUE(store.AddRecords("d1", response, nullptr).ok());
  v1::Deployment page;
  page.set_deployment("d1");
  ASSERT_TRUE(store.AddNodes("", 2, 1 << 20, &page).ok());
  ASSERT_EQ(page.nodes_size(), 2);
  EXPECT_EQ(page.nodes(1).node(), "n2");
  EXPECT_EQ(page.next_page_token(), "n2");
  page.clear_nodes();
  page.clear_next_page_token();
  ASSERT_TRUE(store.AddNodes("n2", 2, 1 << 20, &page).ok());
  ASSERT_EQ(page.nodes_size(), 1);
  EXPECT_EQ(page.next_page_token(), "");
  // A page has at least one node, whatever its size.
  page.clear_nodes();
  ASSERT_TRUE(store.AddNodes("", 10, 10, &page).ok());
  EXPECT_EQ(page.nodes_size(), 1);
  EXPECT_EQ(page.next_page_token(), "n1");
}

TEST_F(DeploymentStoreTest, OutputsAreHiddenUntilTheNodeHasSignedThem) {
  DeploymentStore store(*database_);
  ASSERT_TRUE(Create(store, "d1").ok());
  const auto add = [&](auto fill) {
    v1::WatchJobResponse response;
    v1::JobRecord& record = *response.add_records();
    record.set_node("d1");
    fill(record);
    ASSERT_TRUE(store.AddRecords("d1", response, nullptr).ok());
  };
  const auto node = [&] {
    v1::Deployment page;
    page.set_deployment("d1");
    EXPECT_TRUE(store.AddNodes("", 1, 1 << 20, &page).ok());
    return page.nodes_size() == 1 ? page.nodes(0) : v1::DeploymentNode();
  };
  add([](v1::JobRecord& record) { record.mutable_outputs()->add_outputs()->set_name("url"); });
  add([](v1::JobRecord& record) { record.mutable_workspace()->set_workspace("w"); });
  EXPECT_FALSE(node().has_outputs());
  add([](v1::JobRecord& record) {
    record.mutable_final()->set_outcome(v1::JOB_OUTCOME_TIMED_OUT);  // of the root relay
  });
  EXPECT_TRUE(node().has_final());
  EXPECT_FALSE(node().has_outputs());
  EXPECT_FALSE(node().has_workspace());
  add([](v1::JobRecord& record) {
    record.mutable_final()->set_outcome(v1::JOB_OUTCOME_EXITED);
    record.mutable_final()->set_records_verified(true);
  });
  EXPECT_EQ(node().outputs().outputs_size(), 1);
  EXPECT_TRUE(node().has_workspace());
}

// Other readers of the database wait for one page.
TEST_F(DeploymentStoreTest, PageOfDeploymentsIsBoundedByItsBytes) {
  DeploymentStore store(*database_);
  constexpr size_t kBytes = 80 << 10;
  constexpr size_t kCount = 40;
  for (size_t i = 0; i < kCount; ++i) {
    const std::string id = absl::StrCat("d", i);
    ASSERT_TRUE(Create(store, id).ok());
    ASSERT_TRUE(store.Fail(id, std::string(kBytes, 'x'), false, absl::Now()).ok());
  }
  std::string token;
  size_t count = 0;
  do {
    const auto page = store.List(token, 1'000, &token);
    ASSERT_TRUE(page.ok()) << page.status();
    ASSERT_FALSE(page->empty());
    EXPECT_LE(page->size(), kMaxPageBytes / kBytes);
    EXPECT_EQ(page->front().deployment(), absl::StrCat("d", kCount - 1 - count));
    count += page->size();
  } while (!token.empty());
  EXPECT_EQ(count, kCount);
}

// The service waits for it before it serves.
TEST_F(DeploymentStoreTest, OpenDeploymentsAreFoundByIndexes) {
  DeploymentStore store(*database_);
  ASSERT_TRUE(store.ListOpen().ok());
  std::string plan;
  ASSERT_TRUE(database_
                  ->Read([&](sqlite::Connection& db) {
                    plan = sqlite::QueryPlan(db, "unsettled < 0");
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_THAT(plan, HasSubstr("deployments USING INDEX deployments_open"));
  EXPECT_THAT(plan, HasSubstr("deployments USING INDEX deployments_unsettled"));
}

TEST_F(DeploymentStoreTest, FirstTenNodesWithoutARecordAreNamed) {
  DeploymentStore store(*database_);
  v1::Deployment message;
  message.set_deployment("d1");
  message.set_job("j1");
  v1::CreateDeploymentRequest request;
  for (int i = 30; i >= 10; --i) request.add_nodes(absl::StrCat("n", i));
  ASSERT_TRUE(store.Create(message, request).ok());
  v1::WatchJobResponse response;
  response.set_position(1);
  response.add_records()->set_node("n11");
  response.mutable_records(0)->mutable_started();
  ASSERT_TRUE(store.AddRecords("d1", response, nullptr).ok());
  ASSERT_TRUE(store.AddSilentNodes(&message).ok());
  ASSERT_EQ(message.silent_nodes_size(), 10);
  EXPECT_EQ(message.silent_nodes(0), "n10");
  EXPECT_EQ(message.silent_nodes(1), "n12");
  EXPECT_EQ(message.silent_nodes(9), "n20");
}

TEST_F(DeploymentStoreTest, CancelledDeploymentEndsOnlyBeforeItsSubmission) {
  DeploymentStore store(*database_);
  ASSERT_TRUE(Create(store, "d1").ok());
  ASSERT_TRUE(Create(store, "d2").ok());
  ASSERT_TRUE(store.BeginSubmission("d2").ok());
  EXPECT_EQ(store.RequestCancel("d1", {"bob"}, absl::Now())->state(),
            v1::DEPLOYMENT_STATE_CANCELLED);
  EXPECT_EQ(ReasonOf(store.BeginSubmission("d1")), "DEPLOYMENT_NOT_FOUND");
  EXPECT_EQ(store.RequestCancel("d2", {"bob"}, absl::Now())->state(), v1::DEPLOYMENT_STATE_PENDING);
  // The first one counts.
  EXPECT_EQ(store.RequestCancel("d2", {"eve"}, absl::Now())->cancel_requested_by(), "bob");
  EXPECT_EQ(store.Get("d2")->cancel_requested_by(), "bob");
  const auto open = store.ListOpen();
  ASSERT_EQ(open->size(), 1u);
  EXPECT_TRUE(open->front().cancelled);
  ASSERT_TRUE(store.EndCancelled("d2", absl::Now()).ok());
  EXPECT_EQ(store.Get("d2")->state(), v1::DEPLOYMENT_STATE_CANCELLED);
  EXPECT_EQ(ReasonOf(store.RequestCancel("d3", {"bob"}, absl::Now()).status()),
            "DEPLOYMENT_NOT_FOUND");
}

// That version did not store whether it had submitted the command.
TEST_F(DeploymentStoreTest, PendingDeploymentOfTheFirstVersionMayHaveBeenSubmitted) {
  const char* const first[] = {kJobsVersion1};
  const std::string path = folder_ + "/old.db";
  {
    v1::Deployment message;
    message.set_deployment("d1");
    message.set_state(v1::DEPLOYMENT_STATE_PENDING);
    const auto old = sqlite::LocalDatabase::Open(path, first).value();
    ASSERT_TRUE(old->Write([&](sqlite::Connection& db) {
                     db.Run(
                         "INSERT INTO deployments (deployment, job, created_by, ended, message, "
                         "request, request_sha256, position) VALUES ('d1', 'j1', 'ann', 0, ?, x'', "
                         "x'', 0)",
                         sqlite::Blob{message.SerializeAsString()});
                     return absl::OkStatus();
                   })
                    .ok());
  }
  const auto database = sqlite::LocalDatabase::Open(path, kJobsSchema).value();
  DeploymentStore store(*database);
  EXPECT_TRUE(store.GetOpen("d1")->attempted);
  EXPECT_EQ(store.RequestCancel("d1", {"bob"}, absl::Now())->state(), v1::DEPLOYMENT_STATE_PENDING);
}

TEST_F(DeploymentStoreTest, EndedDeploymentDoesNotChange) {
  DeploymentStore store(*database_);
  ASSERT_TRUE(Create(store, "d1").ok());
  ASSERT_TRUE(store.Fail("d1", "over", false, absl::Now()).ok());
  EXPECT_EQ(ReasonOf(store.AddRecords("d1", {}, nullptr)), "DEPLOYMENT_NOT_FOUND");
  EXPECT_EQ(ReasonOf(store.EndWithJob("d1", {})), "DEPLOYMENT_NOT_FOUND");
  EXPECT_EQ(store.Get("d1")->problem(), "over");
}

}  // namespace
}  // namespace muster
