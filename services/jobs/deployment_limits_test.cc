#include "services/jobs/deployment_limits.h"

#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/jobs/deployment_store.h"
#include "services/jobs/jobs_schema.h"

namespace muster {
namespace {

class DeploymentLimitsTest : public ::testing::Test {
 protected:
  DeploymentLimitsTest() {
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

  const std::string folder_ = ::testing::TempDir() + "/limits";
  std::unique_ptr<sqlite::LocalDatabase> database_;
};

TEST_F(DeploymentLimitsTest, OpenDeploymentsAreBoundedForOneCreatorAndInAll) {
  DeploymentStore store(*database_, {.max_open = 4, .max_ended = 10});
  ASSERT_TRUE(Create(store, "d1").ok());
  ASSERT_TRUE(Create(store, "d2").ok());
  EXPECT_EQ(ReasonOf(Create(store, "d3")), "TOO_MANY_DEPLOYMENTS");
  EXPECT_TRUE(Create(store, "d2").ok());  // it exists
  ASSERT_TRUE(Create(store, "d3", "bob").ok());
  ASSERT_TRUE(Create(store, "d4", "bob").ok());
  EXPECT_EQ(ReasonOf(Create(store, "d5", "eve")), "TOO_MANY_DEPLOYMENTS");
  ASSERT_TRUE(store.Fail("d1", "over", false, absl::Now()).ok());
  EXPECT_TRUE(Create(store, "d5", "eve").ok());
}

TEST_F(DeploymentLimitsTest, EndedDeploymentsOfTheCreatorWithTheMostAreRemovedFirst) {
  DeploymentStore store(*database_, {.max_open = 100, .max_ended = 3});
  const auto end = [&](const std::string& id, const std::string& creator) {
    ASSERT_TRUE(Create(store, id, creator).ok());
    ASSERT_TRUE(store.Fail(id, "over", false, absl::Now()).ok());
  };
  end("d1", "ann");
  for (int i = 2; i <= 9; ++i) end(absl::StrCat("d", i), "bob");
  ASSERT_TRUE(Create(store, "d10", "bob").ok());
  EXPECT_TRUE(store.Get("d1").ok());
  EXPECT_EQ(ReasonOf(store.Get("d7").status()), "DEPLOYMENT_NOT_FOUND");
  EXPECT_TRUE(store.Get("d8").ok());
  EXPECT_TRUE(store.Get("d9").ok());
}

TEST_F(DeploymentLimitsTest, OldestEndedDeploymentsAreRemoved) {
  DeploymentStore store(*database_, {.max_open = 100, .max_ended = 2});
  for (int i = 1; i <= 4; ++i) {
    const std::string id = absl::StrCat("d", i);
    ASSERT_TRUE(Create(store, id).ok());
    v1::WatchJobResponse response;
    response.set_position(1);
    response.add_records()->set_node("n1");
    ASSERT_TRUE(store.AddRecords(id, response, nullptr).ok());
    ASSERT_TRUE(store.Fail(id, "over", false, absl::Now()).ok());
  }
  ASSERT_TRUE(Create(store, "d5").ok());
  EXPECT_EQ(ReasonOf(store.Get("d1").status()), "DEPLOYMENT_NOT_FOUND");
  EXPECT_EQ(ReasonOf(store.Get("d2").status()), "DEPLOYMENT_NOT_FOUND");
  EXPECT_TRUE(store.Get("d3").ok());
  int64_t rows = 0;
  ASSERT_TRUE(database_
                  ->Read([&rows](sqlite::Connection& db) {
                    sqlite::Rows count = db.Query("SELECT count(*) FROM deployment_nodes");
                    if (count.Next()) rows = count.Int();
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_EQ(rows, 2);
}

}  // namespace
}  // namespace muster
