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
  const std::vector<v1::Deployment> created = CreateUntilOneWaits(fleet_.admin());
  EXPECT_EQ(relay_.submissions(), 50);
  ASSERT_TRUE(testing::Await([&] {
    return Get(created[50].deployment())->problem() ==
           "it waits for other deployments of its creator to end";
  }));
  EXPECT_EQ(Get(created[50].deployment())->state(), v1::DEPLOYMENT_STATE_PENDING);
  // They do not stop another operator.
  const auto other = CreateAs(fleet_.Issue(UserIdentity{"bob"}), {"n1"});
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_TRUE(relay_.AwaitJob(other->job()));
  EXPECT_EQ(Get(created[50].deployment())->state(), v1::DEPLOYMENT_STATE_PENDING);
  relay_.End(created[0].job(), v1::JOB_STATE_ENDED);
  EXPECT_TRUE(relay_.AwaitJob(created[50].job()));
  EXPECT_EQ(AwaitState(created[50].deployment(), v1::DEPLOYMENT_STATE_RUNNING).problem(), "");
}

}  // namespace
}  // namespace muster
