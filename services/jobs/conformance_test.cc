// Reports, the baseline, and what it admits, over real calls.
#include <grpcpp/grpcpp.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/v1/audit.pb.h"
#include "muster/v1/conformance.grpc.pb.h"
#include "muster/v1/deployments.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/identity/identity.h"
#include "services/common/rpc/forwarding.h"
#include "services/common/rpc/proto_time.h"
#include "services/common/store/sqlite/local_database.h"
#include "services/jobs/jobs_schema.h"
#include "services/jobs/testing/jobs_fixture.h"
#include "testing/fixtures/test_call.h"

namespace muster {
namespace {

using testing::CallUnary;

constexpr const char* kPassed =
    R"({"version":1,"status":"pass","probes":[{"id":"a","status":"pass"}]})";
constexpr const char* kFailed =
    R"({"version":1,"status":"fail","probes":[{"id":"a","required":true,"status":"fail","text":"t"}]})";

class ConformanceTest : public testing::JobsFixture {
 protected:
  absl::StatusOr<v1::NodeConformance> GetNode(const std::string& node) {
    v1::GetConformanceRequest request;
    request.set_node(node);
    return CallUnary<v1::ConformanceService>(
        Connect(fleet_.admin()), &v1::ConformanceService::Stub::GetConformance, request);
  }

  absl::StatusOr<v1::ListConformanceResponse> List(int page_size, const std::string& token = "") {
    v1::ListConformanceRequest request;
    request.set_page_size(page_size);
    request.set_page_token(token);
    return CallUnary<v1::ConformanceService>(
        Connect(fleet_.admin()), &v1::ConformanceService::Stub::ListConformance, request);
  }

  absl::StatusOr<v1::ConformanceBaseline> SetBaseline(const std::string& node,
                                                      absl::Duration max_age = absl::Hours(24)) {
    v1::SetBaselineRequest request;
    request.set_node(node);
    ToProto(max_age, request.mutable_max_age());
    return CallUnary<v1::ConformanceService>(Connect(fleet_.admin()),
                                             &v1::ConformanceService::Stub::SetBaseline, request);
  }

  absl::StatusOr<v1::ConformanceBaseline> RemoveBaseline() {
    return CallUnary<v1::ConformanceService>(Connect(fleet_.admin()),
                                             &v1::ConformanceService::Stub::RemoveBaseline,
                                             v1::RemoveBaselineRequest());
  }

  // Runs the type on a node that sends this report.
  void Probe(const std::string& node, const std::string& report, bool verified = true) {
    v1::CreateDeploymentRequest request = Request({node});
    v1::Command command = CommandOf(request);
    auto& content = *command.mutable_container()->mutable_deployment();
    std::string document = TypeDocument("1.0.0");
    document = absl::StrCat(document.substr(0, document.find("name: greet")), "name: conformance",
                            "\nversion: 1.0.0\nimage: ", command.container().image(),
                            "\ncontract: 1\noutputs:\n  report: {required: true}\n");
    const auto type = CreateType(document);
    ASSERT_TRUE(type.ok()) << type.status();
    content.set_type_document(type->document());
    content.set_parameters("{}");
    const auto created = Create(SignedRequest(std::move(command), {node}));
    ASSERT_TRUE(created.ok()) << created.status();
    ASSERT_TRUE(relay_.AwaitJob(created->job()));
    v1::JobRecord outputs;
    outputs.set_node(node);
    outputs.set_sequence(1);
    auto& output = *outputs.mutable_outputs()->add_outputs();
    output.set_name("report");
    output.set_value(report);
    relay_.AddRecord(created->job(), outputs);
    v1::JobRecord end;
    end.set_node(node);
    end.set_sequence(2);
    end.mutable_final()->set_outcome(v1::JOB_OUTCOME_EXITED);
    end.mutable_final()->set_records_verified(verified);
    relay_.AddRecord(created->job(), end);
    relay_.End(created->job(), v1::JOB_STATE_ENDED);
    AwaitState(created->deployment(), v1::DEPLOYMENT_STATE_SUCCEEDED);
  }

  // Makes the report of a node this much older.
  void Age(const std::string& node, absl::Duration by) {
    StopService();
    {
      const auto database =
          sqlite::LocalDatabase::Open(config_.state_folder + "/jobs.db", kJobsSchema).value();
      ASSERT_TRUE(database
                      ->Write([&](sqlite::Connection& db) {
                        db.Run(
                            "UPDATE conformance_reports SET received_at = received_at - ? "
                            "WHERE node = ?",
                            absl::ToInt64Microseconds(by), node);
                        return absl::OkStatus();
                      })
                      .ok());
    }
    StartService();
  }
};

TEST_F(ConformanceTest, LastReportOfEachNodeIsKept) {
  EXPECT_EQ(ReasonOf(GetNode("n1").status()), "NO_CONFORMANCE_REPORT");
  Probe("n1", kFailed);
  Probe("n1", kPassed);
  Probe("n2", kFailed);
  const auto node = GetNode("n1");
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(node->status(), "pass");
  EXPECT_EQ(node->report(), kPassed);
  EXPECT_EQ(node->type(), "conformance@1.0.0");
  EXPECT_EQ(node->state(), v1::CONFORMANCE_STATE_NO_BASELINE);
  const auto first = List(1);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_EQ(first->nodes_size(), 1);
  EXPECT_EQ(first->nodes(0).node(), "n1");
  EXPECT_EQ(first->nodes(0).report(), "");
  const auto second = List(1, first->next_page_token());
  ASSERT_EQ(second->nodes_size(), 1);
  EXPECT_EQ(second->nodes(0).node(), "n2");
  EXPECT_EQ(second->nodes(0).status(), "fail");
  EXPECT_EQ(second->next_page_token(), "");
}

TEST_F(ConformanceTest, ReportThatTheNodeDidNotSignIsNotKept) {
  Probe("n1", kPassed, /*verified=*/false);
  EXPECT_EQ(ReasonOf(GetNode("n1").status()), "NO_CONFORMANCE_REPORT");
}

TEST_F(ConformanceTest, BaselineAdmitsConformantNodes) {
  Probe("n1", kPassed);
  Probe("n2", kFailed);
  ASSERT_TRUE(Create(Request({"n2"})).ok());  // before there is a baseline
  EXPECT_EQ(ReasonOf(SetBaseline("n9").status()), "NO_CONFORMANCE_REPORT");
  EXPECT_EQ(ReasonOf(SetBaseline("n1", absl::Minutes(1)).status()), "INVALID_BASELINE");
  const auto baseline = SetBaseline("n1");
  ASSERT_TRUE(baseline.ok()) << baseline.status();
  EXPECT_EQ(baseline->report(), kPassed);
  EXPECT_TRUE(absl::StrContains(baseline->set_by(), "/user/")) << baseline->set_by();

  EXPECT_TRUE(Create(Request({"n1"})).ok());
  const auto refused = Create(Request({"n1", "n2", "n3"}));
  EXPECT_EQ(ReasonOf(refused.status()), "NOT_CONFORMANT");
  EXPECT_TRUE(
      absl::StrContains(refused.status().message(), "n2: a does not pass; n3: it has no report"))
      << refused.status();
  const auto different = GetNode("n2");
  EXPECT_EQ(different->state(), v1::CONFORMANCE_STATE_DIFFERENT);
  ASSERT_EQ(different->differences_size(), 1);
  EXPECT_EQ(different->differences(0).text(), "t");

  v1::CreateDeploymentRequest request = Request({"n2"});
  request.set_skip_conformance(true);
  const auto skipped = Create(request);
  ASSERT_TRUE(skipped.ok()) << skipped.status();
  EXPECT_TRUE(skipped->skip_conformance());
  // No operator signs this choice.
  const auto gateway = Connect(fleet_.Issue(ServiceIdentity{ServiceRole::kGateway, "g1"}));
  EXPECT_EQ(ReasonOf(testing::CallUnary<v1::DeploymentService>(
                         gateway, &v1::DeploymentService::Stub::CreateDeployment, request,
                         {{kForwardedIdentity, skipped->created_by()}})
                         .status()),
            "CONFORMANCE_NOT_SKIPPED");
  Probe("n3", kPassed);  // the probes themselves need no report
  EXPECT_TRUE(Create(Request({"n3"})).ok());

  ASSERT_TRUE(RemoveBaseline().ok());
  EXPECT_TRUE(Create(Request({"n2"})).ok());
  EXPECT_EQ(ReasonOf(RemoveBaseline().status()), "NO_BASELINE");

  const auto records = AwaitAuditRecords("n1", 2);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].kind(), v1::AUDIT_KIND_CONFORMANCE);
  EXPECT_EQ(records[0].actor(), baseline->set_by());
  EXPECT_TRUE(absl::StartsWith(records[0].text(), "baseline set at ")) << records[0].text();
  EXPECT_TRUE(absl::StrContains(records[0].text(), baseline->deployment()));
  EXPECT_TRUE(absl::StartsWith(records[1].text(), "baseline removed at ")) << records[1].text();
}

// The reports are read in pieces of a hundred nodes, or fewer if they are large.
TEST_F(ConformanceTest, ManyNodesAreCheckedByTheirOwnReports) {
  Probe("n1", kPassed);
  ASSERT_TRUE(SetBaseline("n1").ok());
  std::vector<std::string> nodes;
  for (int i = 0; i < 250; ++i) nodes.push_back(absl::StrCat("m", i));
  StopService();
  {
    const auto database =
        sqlite::LocalDatabase::Open(config_.state_folder + "/jobs.db", kJobsSchema).value();
    ASSERT_TRUE(database
                    ->Write([&](sqlite::Connection& db) {
                      for (const std::string& node : nodes) {
                        db.Run(
                            "INSERT INTO conformance_reports SELECT ?, deployment, type, "
                            "received_at, ? FROM conformance_reports WHERE node = 'n1'",
                            node, std::string_view(node == "m205" ? kFailed : kPassed));
                      }
                      db.Run(
                          "UPDATE conformance_reports SET report = report || ? WHERE node < 'm2'",
                          std::string(60'000, ' '));
                      return absl::OkStatus();
                    })
                    .ok());
  }
  StartService();
  nodes.insert(nodes.begin() + 120, "m999");
  const auto refused = Create(Request(nodes));
  EXPECT_EQ(ReasonOf(refused.status()), "NOT_CONFORMANT");
  EXPECT_TRUE(absl::StrContains(refused.status().message(),
                                "m205: a does not pass; m999: it has no report"))
      << refused.status();
}

TEST_F(ConformanceTest, DeploymentForAllNodesIsNotAdmitted) {
  Probe("n1", kPassed);
  ASSERT_TRUE(SetBaseline("n1").ok());
  const absl::Status refused = Create(Request({})).status();
  EXPECT_EQ(ReasonOf(refused), "NOT_CONFORMANT");
  EXPECT_TRUE(absl::StrContains(NextStepOf(refused), "Name the nodes")) << NextStepOf(refused);
}

TEST_F(ConformanceTest, OldReportDoesNotAdmitAndARepeatedCallReturnsWhatIsStored) {
  Probe("n1", kPassed);
  ASSERT_TRUE(SetBaseline("n1").ok());
  const v1::CreateDeploymentRequest before = Request({"n1"});
  ASSERT_TRUE(Create(before).ok());
  Age("n1", absl::Hours(25));
  EXPECT_EQ(GetNode("n1")->state(), v1::CONFORMANCE_STATE_OUTDATED);
  const auto refused = Create(Request({"n1"}));
  EXPECT_TRUE(absl::StrContains(refused.status().message(), "n1: its report is too old"))
      << refused.status();
  EXPECT_TRUE(Create(before).ok());
}

}  // namespace
}  // namespace muster
