// The audit log, and reports of the root relay about shared files, over TLS.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/v1/audit.grpc.pb.h"
#include "muster/v1/runs.grpc.pb.h"
#include "services/aggregator/testing/join_fixture.h"
#include "services/common/base/error.h"
#include "services/common/identity/signing_request.h"
#include "services/common/rpc/forwarding.h"
#include "services/common/store/sqlite/sqlite_store.h"
#include "testing/fixtures/test_call.h"

namespace muster {
namespace {

using testing::JoinFixture;
using testing::Machine;
using testing::TestIdentity;

class AuditTest : public JoinFixture {
 protected:
  absl::Status Record(const TestIdentity& as, const v1::RecordShareRemovalRequest& request) {
    return Call<v1::AuditService>(fleet_.Connect(as), &v1::AuditService::Stub::RecordShareRemoval,
                                  request)
        .status();
  }

  const TestIdentity relay_ = fleet_.Issue(ServiceIdentity{ServiceRole::kRelay, "root"});
};

TEST_F(AuditTest, RemovalOfASharedFileIsAudited) {
  v1::RecordShareRemovalRequest request;
  request.mutable_key()->set_source("n1");
  request.mutable_key()->set_target("n2");
  const std::string alice = absl::StrCat("spiffe://", fleet_.name(), "/user/alice");
  request.set_actor(alice);
  request.set_relay("far");
  EXPECT_EQ(ReasonOf(Record(relay_, request)), "INVALID_SHARE");
  request.mutable_key()->set_id("report.csv");
  ASSERT_TRUE(Record(relay_, request).ok());
  EXPECT_NE(std::string(Record(fleet_.admin(), request).message()).find("ROLE_NOT_ALLOWED"),
            std::string::npos);
  EXPECT_EQ(ReasonOf(Record(fleet_.Issue(ServiceIdentity{ServiceRole::kRelay, "far"}), request)),
            "NOT_YOURS");
  for (const auto& [actor, reason] : std::vector<std::pair<std::string, std::string>>{
           {"alice", "IDENTITY_MALFORMED"},
           {"spiffe://other/user/alice", "IDENTITY_FOREIGN"},
           {absl::StrCat("spiffe://", fleet_.name(), "/service/relay/far"), "ROLE_NOT_ALLOWED"}}) {
    request.set_actor(actor);
    EXPECT_EQ(ReasonOf(Record(relay_, request)), reason) << actor;
  }
  fleet_.Stop();
  SqliteStoreOptions options;
  options.path = fleet_.config.state_folder + "/state.db";
  const auto store = OpenSqliteStore(std::move(options));
  ASSERT_TRUE(store.ok()) << store.status();
  const auto log = (*store)->Audit({}, "", 100);
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_FALSE(log->items.empty());
  EXPECT_EQ(log->items.back().kind, AuditKind::kShare);
  EXPECT_EQ(log->items.back().actor, alice);
  EXPECT_EQ(log->items.back().text,
            "shared file report.csv from n1 for n2: removal requested at relay far");
}

TEST_F(AuditTest, ChangeIsRecordedOnceAndOnlyForTheJobsService) {
  const TestIdentity jobs = fleet_.Issue(ServiceIdentity{ServiceRole::kJobs, "main"});
  const auto record = [&](const TestIdentity& as, const v1::RecordServiceChangeRequest& request) {
    return Call<v1::AuditService>(fleet_.Connect(as), &v1::AuditService::Stub::RecordServiceChange,
                                  request)
        .status();
  };
  v1::RecordServiceChangeRequest request;
  request.set_kind(v1::AUDIT_KIND_SECRET);
  request.set_actor(absl::StrCat("spiffe://", fleet_.name(), "/user/alice"));
  request.set_vouched_by(absl::StrCat("spiffe://", fleet_.name(), "/service/gateway/g1"));
  request.set_subject("prod/db");
  request.set_event("stored");
  request.set_detail(absl::StrCat("version 1 ", std::string(2'000, 'x')));
  request.mutable_time()->set_seconds(1'700'000'000);
  request.mutable_time()->set_nanos(5'000);
  ASSERT_TRUE(record(jobs, request).ok());
  ASSERT_TRUE(record(jobs, request).ok()) << "again, after a kill of the jobs service";
  request.mutable_time()->set_nanos(6'000);
  ASSERT_TRUE(record(jobs, request).ok()) << "another change";
  for (const TestIdentity& other : {fleet_.admin(), relay_}) {
    EXPECT_NE(std::string(record(other, request).message()).find("ROLE_NOT_ALLOWED"),
              std::string::npos);
  }
  v1::RecordServiceChangeRequest other_kind = request;
  for (int kind = v1::AUDIT_KIND_TEMPLATE; kind <= v1::AUDIT_KIND_WORKSPACE; ++kind) {
    if (kind == v1::AUDIT_KIND_SECRET) continue;
    other_kind.set_kind(static_cast<v1::AuditKind>(kind));
    EXPECT_TRUE(record(jobs, other_kind).ok()) << kind;
  }
  const auto refused = [&](const auto& change) {
    v1::RecordServiceChangeRequest wrong = request;
    change(&wrong);
    return ReasonOf(record(jobs, wrong));
  };
  EXPECT_EQ(refused([](auto* wrong) { wrong->set_kind(v1::AUDIT_KIND_NODE); }), "INVALID_NAME");
  EXPECT_EQ(refused([](auto* wrong) { wrong->set_subject(""); }), "INVALID_NAME");
  EXPECT_EQ(refused([](auto* wrong) { wrong->set_subject(std::string(513, 's')); }),
            "INVALID_NAME");
  EXPECT_EQ(refused([](auto* wrong) { wrong->set_event(""); }), "INVALID_NAME");
  EXPECT_EQ(refused([](auto* wrong) { wrong->set_actor("spiffe://other/user/alice"); }),
            "IDENTITY_FOREIGN");
  EXPECT_EQ(refused([&](auto* wrong) {
              wrong->set_actor(absl::StrCat("spiffe://", fleet_.name(), "/node/n1"));
            }),
            "ROLE_NOT_ALLOWED");
  EXPECT_EQ(refused([&](auto* wrong) { wrong->set_vouched_by(wrong->actor()); }),
            "ROLE_NOT_ALLOWED");

  v1::ListAuditRecordsRequest list;
  list.add_kinds(v1::AUDIT_KIND_SECRET);
  const auto records = Call<v1::AuditService>(fleet_.Connect(fleet_.admin()),
                                              &v1::AuditService::Stub::ListAuditRecords, list);
  ASSERT_TRUE(records.ok()) << records.status();
  ASSERT_EQ(records->records_size(), 2);
  const v1::AuditRecord& first = records->records(0);
  EXPECT_EQ(first.actor(), request.actor());
  EXPECT_EQ(first.vouched_by(), request.vouched_by());
  EXPECT_EQ(first.subject(), "prod/db");
  EXPECT_EQ(first.text().substr(0, 49), "stored at 2023-11-14T22:13:20.000005Z: version 1 ");
  EXPECT_LT(first.text().size(), 1'100u);
}

TEST_F(AuditTest, JobIsRecordedOnlyForTheRootRelay) {
  const auto record = [&](const TestIdentity& as, const v1::RecordJobRequest& request) {
    return Call<v1::AuditService>(fleet_.Connect(as), &v1::AuditService::Stub::RecordJob, request)
        .status();
  };
  v1::RecordJobRequest request;
  request.set_job("0123");
  request.set_actor(absl::StrCat("spiffe://", fleet_.name(), "/user/alice"));
  request.set_action("exec");
  request.add_argv("/bin/echo");
  request.add_argv("it's");
  request.add_argv(std::string(2'000, 'x'));
  request.set_targets(3);
  request.mutable_time()->set_seconds(1'700'000'000);
  EXPECT_EQ(ReasonOf(record(relay_, request)), "INVALID_NAME");
  request.set_job("0123456789abcdef0123456789abcdef");
  ASSERT_TRUE(record(relay_, request).ok());
  EXPECT_NE(std::string(record(fleet_.admin(), request).message()).find("ROLE_NOT_ALLOWED"),
            std::string::npos);
  EXPECT_EQ(ReasonOf(record(fleet_.Issue(ServiceIdentity{ServiceRole::kRelay, "far"}), request)),
            "NOT_YOURS");
  v1::RecordJobRequest cancel;
  cancel.set_job(request.job());
  cancel.set_actor(request.actor());
  cancel.set_cancelled(true);
  cancel.mutable_time()->set_seconds(1'700'000'060);
  ASSERT_TRUE(record(relay_, cancel).ok());
  ASSERT_TRUE(record(relay_, request).ok()) << "again, after a kill of the relay";
  ASSERT_TRUE(record(relay_, cancel).ok());
  cancel.clear_time();
  ASSERT_TRUE(record(relay_, cancel).ok());
  cancel.set_actor(absl::StrCat("spiffe://", fleet_.name(), "/node/n1"));
  EXPECT_EQ(ReasonOf(record(relay_, cancel)), "ROLE_NOT_ALLOWED");

  v1::ListAuditRecordsRequest list;
  list.set_subject(request.job());
  const auto records = Call<v1::AuditService>(fleet_.Connect(fleet_.admin()),
                                              &v1::AuditService::Stub::ListAuditRecords, list);
  ASSERT_TRUE(records.ok()) << records.status();
  ASSERT_EQ(records->records_size(), 3);
  EXPECT_EQ(records->records(0).kind(), v1::AUDIT_KIND_JOB);
  EXPECT_EQ(records->records(0).actor(), request.actor());
  EXPECT_EQ(records->records(0).subject(), request.job());
  EXPECT_EQ(records->records(0).text().substr(0, 77),
            R"(submitted at 2023-11-14T22:13:20Z for 3 nodes: exec /bin/echo 'it'\''s' xxxxx)");
  EXPECT_GT(records->records(0).time().seconds(), request.time().seconds()) << "the arrival";
  EXPECT_LT(records->records(0).text().size(), 1'100u);
  EXPECT_EQ(records->records(1).text(), "cancelled at 2023-11-14T22:14:20Z");
  EXPECT_EQ(records->records(2).text(), "cancelled");
}

TEST_F(AuditTest, OperatorListsRecords) {
  ASSERT_TRUE(Join(Create("n1"), Machine()).ok());
  v1::ListAuditRecordsRequest request;
  const auto list = [&](const TestIdentity& as) {
    return Call<v1::AuditService>(fleet_.Connect(as), &v1::AuditService::Stub::ListAuditRecords,
                                  request);
  };
  request.add_kinds(v1::AUDIT_KIND_NODE);
  const auto all = list(fleet_.admin());
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->records_size(), 2);  // token and join
  const v1::AuditRecord& joined = all->records(1);
  EXPECT_EQ(joined.kind(), v1::AUDIT_KIND_NODE);
  EXPECT_EQ(joined.key().node(), "n1");
  EXPECT_EQ(joined.actor(), absl::StrCat("spiffe://", fleet_.name(), "/node/n1"));
  EXPECT_NE(joined.text(), "");
  EXPECT_EQ(joined.count(), 1);
  EXPECT_GT(joined.time().seconds(), 0);
  EXPECT_EQ(all->next_page_token(), "");
  request.set_newest_first(true);
  request.set_page_size(1);
  EXPECT_EQ(list(fleet_.admin())->records(0).sequence(), joined.sequence());
  request.set_page_token(list(fleet_.admin())->next_page_token());
  EXPECT_LT(list(fleet_.admin())->records(0).sequence(), joined.sequence());
  request.Clear();
  request.set_after_sequence(joined.sequence());
  EXPECT_EQ(list(fleet_.admin())->records_size(), 0);
  request.Clear();
  *request.mutable_since() = joined.time();
  request.set_actor(joined.actor());
  EXPECT_EQ(list(fleet_.admin())->records_size(), 1);
  request.set_page_size(1'001);
  EXPECT_EQ(ReasonOf(list(fleet_.admin()).status()), "INVALID_PAGE_SIZE");
  request.Clear();
  request.set_run("x/y");
  EXPECT_EQ(ReasonOf(list(fleet_.admin()).status()), "INVALID_NAME");
  for (const TestIdentity& other : {relay_, fleet_.Issue(NodeIdentity{"n1"})}) {
    EXPECT_NE(std::string(list(other).status().message()).find("ROLE_NOT_ALLOWED"),
              std::string::npos);
  }
}

// An operator behind a gateway is its word: the record names both.
TEST_F(AuditTest, RecordOfACallThroughAGatewayNamesTheGateway) {
  ASSERT_TRUE(Join(Create("n1"), Machine()).ok());
  const auto gateway = fleet_.Connect(fleet_.Issue(ServiceIdentity{ServiceRole::kGateway, "g"}));
  const std::string tester = absl::StrCat("spiffe://", fleet_.name(), "/user/tester");
  const std::vector<std::pair<std::string, std::string>> forwarded = {{kForwardedIdentity, tester}};
  v1::CreateRunRequest create;
  create.add_plugins("hostfacts");
  create.add_nodes("n1");
  const auto run = testing::CallUnary<v1::RunService>(gateway, &v1::RunService::Stub::CreateRun,
                                                      create, forwarded);
  ASSERT_TRUE(run.ok()) << run.status();
  v1::IssueViewerCredentialRequest viewer;
  viewer.set_run(run->id());
  viewer.set_csr_pem(*CreateSigningRequest(*PrivateKey::Generate()));
  ASSERT_TRUE(testing::CallUnary<v1::RunService>(
                  gateway, &v1::RunService::Stub::IssueViewerCredential, viewer, forwarded)
                  .ok());
  v1::PinRunRequest pin;
  pin.set_run(run->id());
  ASSERT_TRUE(
      testing::CallUnary<v1::RunService>(gateway, &v1::RunService::Stub::PinRun, pin, forwarded)
          .ok());
  v1::CancelRunRequest cancel;
  cancel.set_run(run->id());
  ASSERT_TRUE(testing::CallUnary<v1::RunService>(gateway, &v1::RunService::Stub::CancelRun, cancel,
                                                 forwarded)
                  .ok());
  v1::DeleteRunRequest erase;
  erase.set_run(run->id());
  ASSERT_TRUE(testing::CallUnary<v1::RunService>(gateway, &v1::RunService::Stub::DeleteRun, erase,
                                                 forwarded)
                  .ok());
  v1::LabelNodeRequest label;
  label.set_node("n1");
  (*label.mutable_set())["rack"] = "b1";
  ASSERT_TRUE(testing::CallUnary<v1::EnrollmentService>(
                  gateway, &v1::EnrollmentService::Stub::LabelNode, label, forwarded)
                  .ok());
  v1::RevokeNodeRequest revoke;
  revoke.set_node("n1");
  ASSERT_TRUE(testing::CallUnary<v1::EnrollmentService>(
                  gateway, &v1::EnrollmentService::Stub::RevokeNode, revoke, forwarded)
                  .ok());
  const Token other = Create("n2");
  v1::RevokeJoinTokenRequest end;
  end.set_id(other.id);
  ASSERT_TRUE(testing::CallUnary<v1::EnrollmentService>(
                  gateway, &v1::EnrollmentService::Stub::RevokeJoinToken, end, forwarded)
                  .ok());

  v1::ListAuditRecordsRequest list;
  list.set_actor(tester);
  const auto records = Call<v1::AuditService>(fleet_.Connect(fleet_.admin()),
                                              &v1::AuditService::Stub::ListAuditRecords, list);
  ASSERT_TRUE(records.ok()) << records.status();
  std::vector<std::string> direct;
  std::vector<std::string> vouched;
  for (const v1::AuditRecord& record : records->records()) {
    const std::string words = record.text().substr(0, record.text().find_first_of(" :"));
    (record.vouched_by().empty() ? direct : vouched).push_back(words);
    if (record.vouched_by().empty()) continue;
    EXPECT_EQ(record.vouched_by(), absl::StrCat("spiffe://", fleet_.name(), "/service/gateway/g"));
  }
  // The first operator's certificate, and both tokens.
  EXPECT_EQ(direct, (std::vector<std::string>{"issued", "join", "join"}));
  EXPECT_EQ(vouched, (std::vector<std::string>{"created", "issued", "pinned", "cancelled",
                                               "deleted", "labels", "revoked", "revoked", "join"}));
}

TEST_F(AuditTest, RelayReadsOnlyTheExistenceOfANode) {
  const Machine machine;
  ASSERT_TRUE(Join(Create("n1"), machine).ok());
  const auto ask = [&](const TestIdentity& as, const std::string& node) {
    v1::GetEnrolledNodeRequest request;
    request.set_node(node);
    return Call<v1::EnrollmentService>(fleet_.Connect(as),
                                       &v1::EnrollmentService::Stub::GetEnrolledNode, request);
  };
  EXPECT_EQ(ReasonOf(ask(relay_, "n9").status()), "NODE_NOT_ENROLLED");
  const auto known = ask(relay_, "n1");
  ASSERT_TRUE(known.ok()) << known.status();
  EXPECT_EQ(known->name(), "n1");
  EXPECT_EQ(known->uri(), "");
  EXPECT_FALSE(known->has_join_time());
  EXPECT_NE(ask(fleet_.admin(), "n1")->uri(), "");
  v1::RevokeNodeRequest revoke;
  revoke.set_node("n1");
  ASSERT_TRUE(Enroll(&v1::EnrollmentService::Stub::RevokeNode, revoke).ok());
  EXPECT_TRUE(ask(relay_, "n1")->revoked());
}

}  // namespace
}  // namespace muster
