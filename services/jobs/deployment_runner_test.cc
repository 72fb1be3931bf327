#include "services/jobs/deployment_runner.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "services/jobs/testing/jobs_fixture.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

class DeploymentRunnerTest : public testing::JobsFixture {};

// The service follows 100 at a time, and 50 of one operator.
TEST_F(DeploymentRunnerTest, FurtherDeploymentsWaitUntilOthersHaveEnded) {
  std::vector<v1::Deployment> created;
  for (int i = 0; i <= 50; ++i) {
    auto one = Create(Request({"n1"}));
    ASSERT_TRUE(one.ok()) << one.status();
    created.push_back(*std::move(one));
  }
  for (size_t i = 0; i < 50; ++i) ASSERT_TRUE(relay_.AwaitJob(created[i].job())) << i;
  EXPECT_EQ(relay_.submissions(), 50);
  EXPECT_EQ(Get(created[50].deployment())->state(), v1::DEPLOYMENT_STATE_PENDING);
  // They do not stop another operator.
  const auto other = CreateAs(fleet_.Issue(UserIdentity{"bob"}), {"n1"});
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_TRUE(relay_.AwaitJob(other->job()));
  EXPECT_EQ(Get(created[50].deployment())->state(), v1::DEPLOYMENT_STATE_PENDING);
  relay_.End(created[0].job(), v1::JOB_STATE_ENDED);
  EXPECT_TRUE(relay_.AwaitJob(created[50].job()));
}

}  // namespace
}  // namespace muster
