#include "services/relay/trust.h"

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/fake_clock.h"
#include "services/relay/testing/recorded_link.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kNode[] = "spiffe://fleet.test/node/n1";

class TrustTest : public ::testing::Test {
 protected:
  std::shared_ptr<RecordedLink> Attach(const std::string& name, bool is_relay = false) {
    auto link = std::make_shared<RecordedLink>();
    EXPECT_TRUE(topology_.Attach(AttachedEntry(name, "root", clock_.Now(), is_relay), link).ok());
    return link;
  }
  // Returns the revoked subjects of a child relay after these messages.
  static std::set<std::string> RevokedAt(RecordedLink& relay) {
    std::set<std::string> subjects;
    for (const v1::AttachResponse& message : relay.Take()) {
      if (message.revoked().reset()) subjects.clear();
      subjects.insert(message.revoked().subjects().begin(), message.revoked().subjects().end());
    }
    return subjects;
  }
  static v1::AttachRequest::Hello Hello(bool is_relay, int64_t version = 0) {
    v1::AttachRequest::Hello hello;
    hello.set_is_relay(is_relay);
    hello.set_revocations_version(version);
    return hello;
  }
  static v1::CommandRevocations List(int64_t version) {
    v1::CommandRevocations list;
    list.set_version(version);
    list.set_command_ca_pem("certificate");
    return list;
  }

  FakeClock clock_;
  Topology topology_{{.name = "root"}, clock_};
  CallCanceller canceller_;
  Trust trust_{"fleet.test", [] { return std::vector<Certificate>(); }, topology_, canceller_,
               clock_};
};

TEST_F(TrustTest, RevokedNodeLosesItsStreamAndChildRelaysAreInformed) {
  const auto node = Attach("n1");
  const auto relay = Attach("r1", /*is_relay=*/true);
  trust_.Revoke({kNode});
  EXPECT_EQ(ReasonOf(node->end()), "IDENTITY_REVOKED");
  EXPECT_THAT(RevokedAt(*relay), ElementsAre(kNode));
  EXPECT_TRUE(trust_.IsRevoked({{"fleet.test", NodeIdentity{"n1"}}, std::nullopt, "", "", "", ""}));
}

TEST_F(TrustTest, ReplaceRemovesSubjectsThatAreNotListed) {
  const auto relay = Attach("r1", /*is_relay=*/true);
  trust_.Revoke({kNode});
  trust_.Replace({"issuer:02"});
  EXPECT_THAT(RevokedAt(*relay), ElementsAre("issuer:02"));
  EXPECT_FALSE(
      trust_.IsRevoked({{"fleet.test", NodeIdentity{"n1"}}, std::nullopt, "", "", "", ""}));
}

TEST_F(TrustTest, LongListIsSentInParts) {
  const auto relay = Attach("r1", /*is_relay=*/true);
  std::set<std::string> subjects;
  for (int i = 0; i < 2'500; ++i) subjects.insert("issuer:" + std::to_string(i));
  trust_.Replace(subjects);
  EXPECT_EQ(RevokedAt(*relay), subjects);
}

TEST_F(TrustTest, ListOfAParentReplacesTheFormerOneWhenItIsWhole) {
  const auto send = [&](const std::string& subject, bool reset, bool more) {
    v1::AttachResponse::Revoked revoked;
    revoked.add_subjects(subject);
    revoked.set_reset(reset);
    revoked.set_more(more);
    EXPECT_TRUE(trust_.HandleRevoked(revoked).ok());
  };
  const auto is_revoked = [&](const std::string& serial) {
    return trust_.IsRevoked({{"fleet.test", NodeIdentity{"n"}}, std::nullopt, "issuer", serial});
  };
  trust_.Replace({"issuer:01", "issuer:02", "issuer:03"});
  const auto relay = Attach("r1", /*is_relay=*/true);
  send("issuer:01", /*reset=*/true, /*more=*/true);
  EXPECT_TRUE(is_revoked("02"));
  EXPECT_THAT(relay->Take(), IsEmpty());
  // The stream ended; the next one begins with the list.
  send("issuer:02", /*reset=*/true, /*more=*/true);
  EXPECT_TRUE(is_revoked("03"));
  send("issuer:04", /*reset=*/false, /*more=*/false);
  EXPECT_FALSE(is_revoked("01"));
  EXPECT_FALSE(is_revoked("03"));
  EXPECT_TRUE(is_revoked("02"));
  EXPECT_TRUE(is_revoked("04"));
  EXPECT_THAT(RevokedAt(*relay), ElementsAre("issuer:02", "issuer:04"));
  send("issuer:05", /*reset=*/false, /*more=*/false);
  EXPECT_TRUE(is_revoked("05"));
  EXPECT_TRUE(is_revoked("04"));
}

TEST_F(TrustTest, RevocationsOfAParentAreBounded) {
  // 100 names of two characters, in two copies.
  Trust trust(
      "fleet.test", [] { return std::vector<Certificate>(); }, topology_, canceller_, clock_,
      2 * 100 * 66);
  const auto send = [&](int first, int last, bool reset = false) {
    v1::AttachResponse::Revoked revoked;
    revoked.set_reset(reset);
    for (int i = first; i <= last; ++i) revoked.add_subjects(std::to_string(i));
    return trust.HandleRevoked(revoked);
  };
  EXPECT_EQ(ReasonOf(send(100, 199, /*reset=*/true)), "RELAY_REFUSED") << "of three characters";
  EXPECT_TRUE(send(10, 98, /*reset=*/true).ok());
  EXPECT_TRUE(send(10, 98).ok()) << "the same names again";
  EXPECT_TRUE(send(99, 99).ok());
  EXPECT_EQ(ReasonOf(send(100, 109)), "RELAY_REFUSED");
  EXPECT_TRUE(send(10, 19, /*reset=*/true).ok()) << "another parent may begin anew";
  EXPECT_TRUE(send(20, 99).ok());
}

TEST_F(TrustTest, NewChildRelayReceivesAllSubjectsAndANodeNone) {
  trust_.Revoke({"issuer:01"});
  trust_.Revoke({"issuer:02"});
  RecordedLink relay;
  trust_.SendRevocations(relay, Hello(/*is_relay=*/true));
  EXPECT_THAT(RevokedAt(relay), ElementsAre("issuer:01", "issuer:02"));
  RecordedLink node;
  trust_.SendRevocations(node, Hello(/*is_relay=*/false));
  EXPECT_THAT(node.Take(), IsEmpty());
}

TEST_F(TrustTest, RevocationDuringTheListOfANewChildIsKept) {
  const auto relay = std::make_shared<HookedLink>();
  ASSERT_TRUE(
      topology_.Attach(AttachedEntry("r1", "root", clock_.Now(), /*is_relay=*/true), relay).ok());
  std::atomic<bool> revoked = false;
  std::jthread revoking;
  relay->before_first = [&] {
    revoking = std::jthread([&] {
      trust_.Revoke({kNode});
      revoked = true;
    });
    // The revocation has to wait for the list: a little time shows that it does not overtake.
    testing::Await([&] { return revoked.load(); }, absl::Milliseconds(100));
  };
  trust_.SendRevocations(*relay, Hello(/*is_relay=*/true));
  revoking.join();
  EXPECT_THAT(RevokedAt(*relay), ElementsAre(kNode));
}

TEST_F(TrustTest, OlderCommandRevocationsAreIgnored) {
  const auto child = Attach("n1");
  trust_.UpdateCommandRevocations(List(7));
  trust_.UpdateCommandRevocations(List(6));
  EXPECT_EQ(trust_.commands_version(), 7);
  const auto sent = child->Take();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].revocations().version(), 7);
  EXPECT_EQ(sent[0].revocations().command_ca_pem(), "") << "nodes have it from their join";
}

// A parent may have added them; they are not signed.
TEST_F(TrustTest, UnknownFieldsOfCommandRevocationsAreNotSentOn) {
  const auto child = Attach("n1");
  v1::CommandRevocations padded = List(7);
  padded.GetReflection()->MutableUnknownFields(&padded)->AddLengthDelimited(
      100, std::string(size_t{1} << 20, 'x'));
  trust_.UpdateCommandRevocations(padded);
  EXPECT_LT(child->Take().at(0).ByteSizeLong(), 100u);
  RecordedLink late;
  trust_.SendCommandRevocations(late, 0);
  EXPECT_LT(late.Take().at(0).ByteSizeLong(), 100u);
}

TEST_F(TrustTest, ChildWithTheNewestCommandRevocationsReceivesNothing) {
  trust_.UpdateCommandRevocations(List(7));
  RecordedLink child;
  EXPECT_EQ(trust_.SendCommandRevocations(child, 7), 7);
  EXPECT_THAT(child.Take(), IsEmpty());
  EXPECT_EQ(trust_.SendCommandRevocations(child, 3), 7);
  EXPECT_EQ(child.Take().size(), 1u);
}

}  // namespace
}  // namespace muster
