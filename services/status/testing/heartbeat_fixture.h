// A real aggregator and a real status service with a run, for tests of heartbeats.
#ifndef MUSTER_SERVICES_STATUS_TESTING_HEARTBEAT_FIXTURE_H_
#define MUSTER_SERVICES_STATUS_TESTING_HEARTBEAT_FIXTURE_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/v1/heartbeats.pb.h"
#include "muster/v1/status.grpc.pb.h"
#include "services/common/rpc/status.h"
#include "testing/fixtures/await.h"
#include "testing/fixtures/test_status.h"

namespace muster::testing {

// Returns a minimal plugin definition.
inline std::string Plugin(const std::string& name) {
  return absl::StrCat("sonobuoy-config:\n  driver: DaemonSet\n  plugin-name: ", name,
                      "\n  result-format: raw\nspec:\n  name: plugin\n  command: [/bin/true]\n");
}

class HeartbeatFixture : public ::testing::Test {
 protected:
  HeartbeatFixture() : status_(fleet_), run_(CreateRun({Plugin("p"), Plugin("q")})) {}

  // A run for n1 and n2 that the status service knows.
  std::string CreateRun(const std::vector<std::string>& plugins) {
    const std::string run = fleet_.CreateRun(plugins, {"n1", "n2"}).id();
    status_.Await(run, [](const v1::RunStatus&) { return true; });
    return run;
  }

  std::shared_ptr<grpc::Channel> As(const std::string& plugin, const std::string& node) {
    return status_.Connect(fleet_.Credential(run_, plugin, node));
  }
  std::shared_ptr<grpc::Channel> AsNode(const std::string& node) {
    return status_.Connect(fleet_.Issue(NodeIdentity{node}));
  }

  static void AddActivity(v1::StreamHeartbeatsRequest* heartbeat, const std::string& run,
                          const std::string& plugin, const std::string& node) {
    v1::ResultKey* key = heartbeat->add_activities()->mutable_key();
    key->set_run(run);
    key->set_plugin(plugin);
    key->set_node(node);
  }

  v1::PairStatus Pair(const std::string& plugin, const std::string& node) {
    const auto status = status_.Get(run_);
    EXPECT_TRUE(status.ok()) << status.status();
    if (!status.ok()) return {};
    for (const v1::PairStatus& pair : status->pairs()) {
      if (pair.plugin() == plugin && pair.node() == node) return pair;
    }
    ADD_FAILURE() << "no pair " << plugin << " " << node;
    return {};
  }

  // As an operator sees it.
  absl::StatusOr<v1::Node> GetNode(const std::string& node) {
    grpc::ClientContext context;
    v1::GetNodeRequest request;
    request.set_node(node);
    v1::Node answer;
    const grpc::Status status = v1::StatusService::NewStub(status_.Connect(fleet_.admin()))
                                    ->GetNode(&context, request, &answer);
    if (!status.ok()) return FromGrpc(status);
    return answer;
  }

  // Until `holds`, 30 s at most.
  void Await(const std::string& what, const std::function<bool()>& holds) {
    ASSERT_TRUE(testing::Await(holds)) << what;
  }
  void AwaitPresence(const std::string& node, v1::Presence presence) {
    Await(v1::Presence_Name(presence), [&] { return GetNode(node)->presence() == presence; });
  }

  TestFleet fleet_;
  TestStatus status_;
  std::string run_;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_STATUS_TESTING_HEARTBEAT_FIXTURE_H_
