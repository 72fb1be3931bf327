#include "services/common/rpc/call_canceller.h"

#include <string>

#include "gtest/gtest.h"
#include "services/common/identity/revocation.h"

namespace muster {
namespace {

// A node behind relay r1.
Caller ForwardedNode() {
  Caller caller;
  caller.identity = {.fleet = "f", .name = NodeIdentity{"n1"}};
  caller.via = Identity{.fleet = "f", .name = ServiceIdentity{ServiceRole::kRelay, "r1"}};
  caller.issuer = "aa";
  caller.serial = "01";
  caller.statement_issuer = "aa";
  caller.statement_serial = "02";
  return caller;
}

TEST(CallCancellerTest, RevokedForwarderIsNotTakenForTheCaller) {
  const std::string relay = *ToUri(*ForwardedNode().via);
  for (const std::string& subject : {CertificateSubject("aa", "01"), relay}) {
    RevocationList list;
    list.Add(subject);
    EXPECT_TRUE(list.IsRevoked(ForwardedNode())) << subject;
    EXPECT_FALSE(list.IsRevoked(WithoutForwarder(ForwardedNode()))) << subject;
  }
}

TEST(CallCancellerTest, RevokedCallerIsRevokedWithoutItsForwarder) {
  const std::string node = *ToUri(ForwardedNode().identity);
  for (const std::string& subject : {CertificateSubject("aa", "02"), node}) {
    RevocationList list;
    list.Add(subject);
    EXPECT_TRUE(list.IsRevoked(WithoutForwarder(ForwardedNode()))) << subject;
  }
  Caller direct = ForwardedNode();
  direct.via.reset();
  RevocationList list;
  list.Add(CertificateSubject("aa", "01"));
  EXPECT_TRUE(list.IsRevoked(WithoutForwarder(direct)));
}

}  // namespace
}  // namespace muster
