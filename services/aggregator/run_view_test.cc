// The view of a run that deliverers get, whose credentials are many.
#include <grpcpp/client_context.h>

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "muster/v1/runs.grpc.pb.h"
#include "testing/fixtures/test_fleet.h"

namespace muster {
namespace {

using testing::TestFleet;
using testing::TestIdentity;

std::string Plugin(const std::string& name) {
  return "sonobuoy-config:\n  driver: DaemonSet\n  plugin-name: " + name +
         "\n  result-format: raw\nspec:\n  name: plugin\n  command: [/bin/true]\n";
}

class RunViewTest : public ::testing::Test {
 protected:
  RunViewTest() : run_(fleet_.CreateRun({Plugin("first"), Plugin("second")}, {"n1"}).id()) {}

  v1::Run Get(const TestIdentity& as) {
    grpc::ClientContext context;
    v1::GetRunRequest request;
    request.set_run(run_);
    v1::Run run;
    EXPECT_TRUE(v1::RunService::NewStub(fleet_.Connect(as))->GetRun(&context, request, &run).ok());
    return run;
  }

  void Cancel() {
    grpc::ClientContext context;
    v1::CancelRunRequest request;
    request.set_run(run_);
    v1::Run run;
    const auto stub = v1::RunService::NewStub(fleet_.Connect(fleet_.admin()));
    EXPECT_TRUE(stub->CancelRun(&context, request, &run).ok());
  }

  TestFleet fleet_;
  const std::string run_;
};

TEST_F(RunViewTest, CredentialForOnePluginGetsNoOther) {
  for (const char* const node : {"n1", ""}) {
    const v1::Run run = Get(fleet_.Credential(run_, "second", node));
    ASSERT_EQ(run.plugins_size(), 1);
    EXPECT_EQ(run.plugins(0).name(), "second");
    EXPECT_FALSE(run.plugins(0).definition_yaml().empty());
  }
  EXPECT_EQ(Get(fleet_.admin()).plugins_size(), 2);
  EXPECT_EQ(Get(fleet_.Issue(NodeIdentity{"n1"})).plugins_size(), 2);
}

TEST_F(RunViewTest, WatchesOfDeliverersGetDefinitionsOnce) {
  struct Watch {
    explicit Watch(const std::shared_ptr<grpc::Channel>& channel, const std::string& run)
        : stub(v1::RunService::NewStub(channel)) {
      request.set_run(run);
      reader = stub->WatchRun(&context, request);
    }
    v1::Run Next() {
      v1::Run run;
      EXPECT_TRUE(reader->Read(&run));
      return run;
    }
    std::unique_ptr<v1::RunService::Stub> stub;
    grpc::ClientContext context;
    v1::WatchRunRequest request;
    std::unique_ptr<grpc::ClientReader<v1::Run>> reader;
  };
  Watch credential(fleet_.Connect(fleet_.Credential(run_, "first", "n1")), run_);
  Watch node(fleet_.Connect(fleet_.Issue(NodeIdentity{"n1"})), run_);
  Watch admin(fleet_.Connect(fleet_.admin()), run_);
  EXPECT_EQ(credential.Next().plugins_size(), 1);
  EXPECT_EQ(node.Next().plugins_size(), 2);
  EXPECT_EQ(admin.Next().plugins_size(), 2);
  Cancel();
  EXPECT_EQ(credential.Next().plugins(0).definition_yaml(), "");
  EXPECT_EQ(node.Next().plugins(1).definition_yaml(), "");
  EXPECT_NE(admin.Next().plugins(1).definition_yaml(), "");
}

}  // namespace
}  // namespace muster
