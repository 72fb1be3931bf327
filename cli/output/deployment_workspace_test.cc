#include "cli/output/deployment_workspace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/time.h"
#include "cli/output/deployment_view.h"
#include "services/common/rpc/proto_time.h"

namespace muster::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Rows(const v1::Deployment& deployment) {
  Table table({{"DEPLOYMENT"}, {"d"}});
  AddWorkspaceOf(deployment, &table);
  return table.Render(0);
}

TEST(DeploymentWorkspaceTest, DeletionAndRefusedVersionAreShown) {
  v1::Deployment deployment;
  EXPECT_THAT(Rows(deployment), Not(HasSubstr("workspace")));
  EXPECT_TRUE(WorkspaceOfJson(deployment).is_null());
  deployment.mutable_workspace()->set_workspace("w");
  EXPECT_THAT(Rows(deployment), HasSubstr("workspace   w, empty at its start\n"));
  EXPECT_THAT(Rows(deployment), Not(HasSubstr("deleted")));
  EXPECT_TRUE(WorkspaceDeletionJson(deployment).is_null());
  deployment.mutable_workspace()->set_version(2);
  deployment.mutable_workspace_deletion()->set_deleted_by("spiffe://f/user/ann");
  const absl::Time time = absl::FromUnixSeconds(1'750'000'000);
  ToProto(time, deployment.mutable_workspace_deletion()->mutable_delete_time());
  v1::DeploymentNode& node = *deployment.add_nodes();
  node.set_node("n1");
  ToProto(time, node.mutable_workspace_refused_time());
  EXPECT_THAT(Rows(deployment), HasSubstr("w, at its start version 2\n"));
  EXPECT_THAT(Rows(deployment), HasSubstr("by ann; a later workspace of this name is another one"));
  EXPECT_THAT(Rows(deployment), HasSubstr("the version that n1 sent was refused 2025-06-15"));
  EXPECT_EQ(WorkspaceDeletionJson(deployment)["deleted_by"], "spiffe://f/user/ann");
  EXPECT_EQ(WorkspaceDeletionJson(deployment)["delete_time"], "2025-06-15T15:06:40Z");
  EXPECT_EQ(ToJson(deployment)["nodes"][0]["workspace_refused_time"], "2025-06-15T15:06:40Z");
  EXPECT_FALSE(ListedJson(deployment).contains("workspace_deletion"));
}

}  // namespace
}  // namespace muster::cli
