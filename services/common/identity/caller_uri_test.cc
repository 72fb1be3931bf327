#include "services/common/identity/caller_uri.h"

#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace muster {
namespace {

Caller CallerWith(Identity::Name name, const std::string& serial) {
  Caller caller;
  caller.identity = {"f", std::move(name)};
  caller.issuer = "ca";
  caller.serial = serial;
  return caller;
}

TEST(HolderOfTest, CertificatesDistinguishTheClientsOfASharedUri) {
  const std::string run = "00000000000000aa";
  for (const Identity::Name& name :
       {Identity::Name(RunViewerIdentity{run}), Identity::Name(RunPluginIdentity{run, "p"})}) {
    EXPECT_NE(HolderOf(CallerWith(name, "1")), HolderOf(CallerWith(name, "2")));
    EXPECT_EQ(HolderOf(CallerWith(name, "1")), HolderOf(CallerWith(name, "1")));
  }
}

TEST(HolderOfTest, RenewedCertificateOfOneClientChangesNothing) {
  EXPECT_EQ(HolderOf(CallerWith(UserIdentity{"ann"}, "1")), "spiffe://f/user/ann");
  EXPECT_EQ(HolderOf(CallerWith(NodeIdentity{"n1"}, "2")), "spiffe://f/node/n1");
}

TEST(HolderOfTest, GatewayNamesTheCertificateOfItsClient) {
  Caller caller = CallerWith(RunViewerIdentity{"00000000000000aa"}, "of-the-gateway");
  caller.via = Identity{"f", ServiceIdentity{ServiceRole::kGateway, "g"}};
  caller.forwarded_certificate = "ca:7";
  EXPECT_EQ(HolderOf(caller), "spiffe://00000000000000aa.f/viewer ca:7");
}

}  // namespace
}  // namespace muster
