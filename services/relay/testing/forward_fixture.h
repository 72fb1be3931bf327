// A node that delivers through a relay: real certificates, a real aggregator, real mutual TLS.
#ifndef MUSTER_SERVICES_RELAY_TESTING_FORWARD_FIXTURE_H_
#define MUSTER_SERVICES_RELAY_TESTING_FORWARD_FIXTURE_H_

#include <grpcpp/grpcpp.h>

#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/v1/results.grpc.pb.h"
#include "services/relay/testing/proxy_fixture.h"
#include "testing/fixtures/node_client.h"

namespace muster::testing {

class ForwardTestBase : public ::testing::Test {
 protected:
  void SetUp() override {
    run_ = fleet_.CreateRun({"hostfacts", "systemd-logs"}, {"n1", "n2"}).id();
    relay_.upstream().Attach("n1", node_);
    relay_.Start();
    relay_.ConnectUp();
  }

  // Returns a client of the library for node n1, attached to the relay.
  std::unique_ptr<client::Client> MakeClient(const std::string& plugin, bool leave = false) {
    return MakeNodeClient(fleet_, node_, relay_.target(), run_, plugin, leave);
  }

  std::string File(const std::string& bytes) {
    const std::string path = absl::StrCat(::testing::TempDir(), "/result");
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  // As the operator sees it, at the aggregator itself.
  v1::Result Committed(const std::string& plugin, const std::string& node = "n1") {
    v1::GetResultRequest request;
    request.mutable_key()->set_run(run_);
    request.mutable_key()->set_plugin(plugin);
    request.mutable_key()->set_node(node);
    grpc::ClientContext context;
    v1::Result result;
    const grpc::Status status = v1::ResultService::NewStub(fleet_.Connect(fleet_.admin()))
                                    ->GetResult(&context, request, &result);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return result;
  }

  // How many results left the spool with this outcome.
  double Outcomes(const std::string& outcome) {
    const std::string text = relay_.metrics().Text();
    const std::string name =
        absl::StrCat("muster_relay_spool_outcomes_total{outcome=\"", outcome, "\"} ");
    const size_t at = text.find(name);
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size()));
  }

  // Expects one report of the relay about n1/hostfacts in the audit log.
  void ExpectReport(const std::string& text) {
    int audited = 0;
    for (const AuditRecord& record : fleet_.Audit(run_)) {
      if (record.kind != AuditKind::kExpired) continue;
      ++audited;
      EXPECT_THAT(record.actor, ::testing::HasSubstr("/service/relay/r1"));
      EXPECT_EQ(record.key.node + "/" + record.key.plugin, "n1/hostfacts");
      EXPECT_THAT(record.text, ::testing::HasSubstr(text));
    }
    EXPECT_EQ(audited, 1);
  }

  // The aggregator stops, and starts again at another address.
  void CutOff() {
    fleet_.Stop();
    relay_.upstream().Cut();
  }
  void Reconnect() {
    fleet_.Start();
    relay_.ConnectUp();
  }

  TestFleet fleet_;
  std::string run_;
  const TestIdentity node_ = fleet_.Issue(NodeIdentity{"n1"});
  ProxyFixture relay_{fleet_};
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_RELAY_TESTING_FORWARD_FIXTURE_H_
