#include "cli/output/audit_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/common/rpc/proto_time.h"

namespace muster::cli {
namespace {

using ::testing::ElementsAre;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

v1::AuditRecord Refused() {
  v1::AuditRecord record;
  record.set_sequence(7);
  record.set_kind(v1::AUDIT_KIND_REFUSED);
  record.set_actor("spiffe://fleet.test/run/r1/plugin/p/node/n1");
  record.mutable_key()->set_run("r1");
  record.mutable_key()->set_node("n1");
  record.set_text("REVOKED: this identity\nwas revoked");
  record.set_count(3);
  ToProto(kNow - absl::Seconds(60), record.mutable_time());
  ToProto(kNow, record.mutable_last_time());
  return record;
}

TEST(AuditViewTest, RepeatedEventIsShownOnceWithItsCount) {
  EXPECT_THAT(AuditCells(Refused(), "fleet.test", kNow),
              ElementsAre("07:59:00 UTC", "refused", "run/r1/plugin/p/node/n1", "run r1, node n1",
                          "REVOKED: this identity. was revoked (3 times, the last at 08:00:00 "
                          "UTC)"));
}

TEST(AuditViewTest, ActorOfAnotherFleetKeepsItsUri) {
  EXPECT_EQ(AuditCells(Refused(), "other.test", kNow)[2],
            "spiffe://fleet.test/run/r1/plugin/p/node/n1");
}

TEST(AuditViewTest, GatewayThatForwardedTheCallIsShown) {
  v1::AuditRecord record = Refused();
  EXPECT_FALSE(ToJson(record).contains("vouched_by"));
  record.set_actor("spiffe://fleet.test/user/alice");
  record.set_vouched_by("spiffe://fleet.test/service/gateway/main");
  EXPECT_EQ(AuditCells(record, "fleet.test", kNow)[2], "user/alice via service/gateway/main");
  EXPECT_EQ(ToJson(record)["actor"], "spiffe://fleet.test/user/alice");
  EXPECT_EQ(ToJson(record)["vouched_by"], "spiffe://fleet.test/service/gateway/main");
}

TEST(AuditViewTest, EveryKindHasAWordThatNamesIt) {
  for (int kind = 1; kind <= v1::AuditKind_MAX; ++kind) {
    if (!v1::AuditKind_IsValid(kind)) continue;
    EXPECT_EQ(AuditKindOf(AuditKindWord(static_cast<v1::AuditKind>(kind))), kind);
  }
  EXPECT_EQ(AuditKindOf("nonsense"), std::nullopt);
  EXPECT_EQ(AuditKindOf("unspecified"), std::nullopt);
}

TEST(AuditViewTest, SubjectIsShown) {
  v1::AuditRecord record;
  record.set_kind(v1::AUDIT_KIND_REVOCATION);
  record.set_subject("spiffe://fleet.test/user/bob");
  EXPECT_EQ(AuditCells(record, "fleet.test", kNow)[3], "user/bob");
  EXPECT_EQ(ToJson(record)["subject"], "spiffe://fleet.test/user/bob");
  record.set_subject("spiffe://3f2a.fleet.test/plugin/p/node/n1");
  EXPECT_EQ(AuditCells(record, "fleet.test", kNow)[3], "run 3f2a/plugin/p/node/n1");
  record.set_subject("spiffe://otherfleet.test/user/bob");
  EXPECT_EQ(AuditCells(record, "fleet.test", kNow)[3], "spiffe://otherfleet.test/user/bob");
  record.set_kind(v1::AUDIT_KIND_JOB);
  record.set_subject("0123456789abcdef0123456789abcdef");
  EXPECT_EQ(AuditCells(record, "fleet.test", kNow)[3], "job 0123456789abcdef0123456789abcdef");
  EXPECT_FALSE(ToJson(Refused()).contains("subject"));
}

TEST(AuditViewTest, NameOfASubjectIsAnIdentityOrAJobOrACertificate) {
  EXPECT_EQ(AuditSubject("f", "alice"), "spiffe://f/user/alice");
  EXPECT_EQ(AuditSubject("f", "node/n1"), "spiffe://f/node/n1");
  EXPECT_EQ(AuditSubject("f", "0123456789abcdef0123456789abcdef"),
            "0123456789abcdef0123456789abcdef");
  EXPECT_EQ(AuditSubject("f", "ab12:01"), "ab12:01");
  EXPECT_EQ(AuditKindOfSubject("alice"), std::nullopt);
  EXPECT_EQ(AuditKindOfSubject("node/n1"), std::nullopt) << "also a kind of records";
}

TEST(AuditViewTest, ChangedObjectIsShownAndFoundWithItsKind) {
  v1::AuditRecord record;
  record.set_kind(v1::AUDIT_KIND_SECRET);
  record.set_subject("prod/db");
  EXPECT_EQ(AuditCells(record, "f", kNow)[3], "secret/prod/db");
  EXPECT_EQ(AuditSubject("f", "secret/prod/db"), "prod/db");
  EXPECT_EQ(AuditKindOfSubject("secret/prod/db"), v1::AUDIT_KIND_SECRET);
  EXPECT_EQ(AuditSubject("f", "template/hi@1.4.0"), "hi@1.4.0");
  EXPECT_EQ(AuditKindOfSubject("workspace/w"), v1::AUDIT_KIND_WORKSPACE);
}

TEST(AuditViewTest, NameOfAnActorBecomesItsUri) {
  EXPECT_EQ(ActorUri("f", "alice"), "spiffe://f/user/alice");
  EXPECT_EQ(ActorUri("f", "node/n1"), "spiffe://f/node/n1");
  EXPECT_EQ(ActorUri("f", "spiffe://g/user/bob"), "spiffe://g/user/bob");
}

TEST(AuditViewTest, JsonContainsOnlyTheGivenPartsOfTheKey) {
  const Json json = ToJson(Refused());
  EXPECT_EQ(json["kind"], "refused");
  EXPECT_EQ(json["run"], "r1");
  EXPECT_FALSE(json.contains("plugin"));
  EXPECT_EQ(json["count"], 3);
}

}  // namespace
}  // namespace muster::cli
