// Queries and reports of the root relay about shared files, over TLS.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/v1/audit.grpc.pb.h"
#include "services/aggregator/testing/join_fixture.h"
#include "services/common/base/error.h"
#include "services/common/store/sqlite/sqlite_store.h"

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
  const auto log = (*store)->Audit("", "", 100);
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_FALSE(log->items.empty());
  EXPECT_EQ(log->items.back().kind, AuditKind::kShare);
  EXPECT_EQ(log->items.back().actor, alice);
  EXPECT_EQ(log->items.back().text, "shared file report.csv from n1 for n2 removed at relay far");
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
