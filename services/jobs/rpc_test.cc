// Rules for every RPC of the jobs service.
#include <google/protobuf/descriptor.h>
#include <grpcpp/grpcpp.h>

#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "muster/v1/conformance.pb.h"
#include "muster/v1/contents.pb.h"
#include "muster/v1/deployments.pb.h"
#include "muster/v1/secrets.pb.h"
#include "muster/v1/templates.pb.h"
#include "muster/v1/workspaces.pb.h"
#include "services/common/identity/rpc_authorization.h"
#include "services/common/rpc/testing/rpc_walk.h"
#include "services/jobs/testing/jobs_fixture.h"

namespace muster {
namespace {

using testing::CallEmpty;
using testing::ExpectBadTextIsAnswered;
using testing::MethodsOf;
using testing::PathOf;
using testing::TestIdentity;

std::vector<const google::protobuf::MethodDescriptor*> Methods() {
  const google::protobuf::FileDescriptor* const files[] = {
      v1::Template::descriptor()->file(),        v1::Deployment::descriptor()->file(),
      v1::NodeConformance::descriptor()->file(), v1::ReadContentRequest::descriptor()->file(),
      v1::Secret::descriptor()->file(),          v1::Workspace::descriptor()->file()};
  return MethodsOf(files);
}

// Nodes alone may call these.
bool IsOfNodes(const std::string& path) {
  return path == "/muster.v1.ContentService/ReadContent" ||
         path == "/muster.v1.SecretService/FetchSecrets" ||
         path == "/muster.v1.WorkspaceService/SaveWorkspace";
}

class JobsRpcTest : public testing::JobsFixture {};

TEST_F(JobsRpcTest, EveryMethodIsServedAndRejectsCallersWithoutARole) {
  std::set<std::string> rows;
  for (const std::string_view row : AuthorizedMethods()) rows.emplace(row);
  const std::vector<TestIdentity> callers = {
      fleet_.Issue(ServiceIdentity{ServiceRole::kStatus, "other"}),
      fleet_.Issue(ServiceIdentity{ServiceRole::kGateway, "g1"}),
      fleet_.Issue(ServiceIdentity{ServiceRole::kRelay, "r1"}), fleet_.Issue(NodeIdentity{"n1"})};
  ASSERT_EQ(Methods().size(), 29u);
  for (const auto* method : Methods()) {
    const std::string path = PathOf(*method);
    SCOPED_TRACE(path);
    EXPECT_TRUE(rows.contains(path));
    std::vector<TestIdentity> refused = callers;
    if (IsOfNodes(path)) refused.back() = fleet_.admin();
    for (const TestIdentity& caller : refused) {
      const grpc::Status status = CallEmpty(Connect(caller), path);
      EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << status.error_message();
    }
  }
}

TEST_F(JobsRpcTest, EveryHandlerAuthorizesItsCaller) {
  for (const auto* method : Methods()) {
    SCOPED_TRACE(PathOf(*method));
    const TestIdentity caller =
        IsOfNodes(PathOf(*method)) ? fleet_.Issue(NodeIdentity{"n1"}) : fleet_.admin();
    const grpc::Status status = CallEmpty(Connect(caller), PathOf(*method));
    EXPECT_EQ(status.error_message().find("did not authorise"), std::string::npos)
        << status.error_message();
    EXPECT_NE(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
    EXPECT_NE(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  }
}

TEST_F(JobsRpcTest, TextThatIsNotUtf8IsAnswered) {
  ExpectBadTextIsAnswered(Connect(fleet_.admin()), Methods());
}

}  // namespace
}  // namespace muster
