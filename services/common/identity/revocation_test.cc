#include "services/common/identity/revocation.h"

#include <atomic>
#include <thread>

#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr char kFleet[] = "fleet-01.muster";

Caller Ann() { return {{kFleet, UserIdentity{"ann"}}, std::nullopt, "aa", "01"}; }

TEST(RevocationTest, IdentityCertificateAndGatewayAreRevoked) {
  RevocationList list;
  EXPECT_FALSE(list.IsRevoked(Ann()));
  list.Add("spiffe://fleet-01.muster/user/bob");
  list.Add(CertificateSubject("aa", "02"));
  EXPECT_FALSE(list.IsRevoked(Ann()));

  Caller other_certificate = Ann();
  other_certificate.serial = "02";
  EXPECT_TRUE(list.IsRevoked(other_certificate));

  list.Add("spiffe://fleet-01.muster/user/ann");
  EXPECT_TRUE(list.IsRevoked(Ann()));

  Caller forwarded{{kFleet, UserIdentity{"carl"}},
                   Identity{kFleet, ServiceIdentity{ServiceRole::kGateway, "g"}},
                   "aa",
                   "03"};
  EXPECT_FALSE(list.IsRevoked(forwarded));
  list.Add("spiffe://fleet-01.muster/service/gateway/g");
  EXPECT_TRUE(list.IsRevoked(forwarded));
}

TEST(RevocationTest, NodeBehindARelayIsRevokedByItsStatementCertificate) {
  RevocationList list;
  Caller caller{{kFleet, NodeIdentity{"n1"}},
                Identity{kFleet, ServiceIdentity{ServiceRole::kRelay, "r"}},
                "aa",
                "01",
                "bb",
                "02"};
  list.Add("bb:01");
  EXPECT_FALSE(list.IsRevoked(caller));
  list.Add("bb:02");
  EXPECT_TRUE(list.IsRevoked(caller));
}

TEST(RevocationTest, SubscriberIsCalledForNewRevocationsUntilUnsubscribed) {
  RevocationList list;
  int calls = 0;
  auto subscription = list.Subscribe([&] { ++calls; });
  list.Add("a:1");
  EXPECT_EQ(calls, 1);
  list.Add("a:1");
  EXPECT_EQ(calls, 1);
  list.Replace({"a:1"});
  EXPECT_EQ(calls, 1);
  list.Replace({"a:2"});
  EXPECT_EQ(calls, 2);
  EXPECT_FALSE(list.Contains("a:1"));
  EXPECT_TRUE(list.Contains("a:2"));
  list.Replace({});
  EXPECT_EQ(calls, 2);
  subscription.reset();
  list.Add("a:3");
  EXPECT_EQ(calls, 2);
}

TEST(RevocationTest, SubscriberSeesTheChange) {
  RevocationList list;
  bool seen = false;
  const auto subscription = list.Subscribe([&] { seen = list.IsRevoked(Ann()); });
  list.Add("spiffe://fleet-01.muster/user/ann");
  EXPECT_TRUE(seen);
}

TEST(RevocationTest, SubscriptionMayOutliveTheList) {
  RevocationList::Subscription subscription;
  {
    RevocationList list;
    subscription = list.Subscribe([] {});
  }
  subscription.reset();
}

TEST(RevocationTest, QueriesDuringChangesAreSafe) {
  RevocationList list;
  std::atomic<bool> stop = false;
  std::thread asker([&] {
    while (!stop) list.IsRevoked(Ann());
  });
  for (int i = 0; i < 1000; ++i) {
    list.Add("a:" + std::to_string(i));
    const auto subscription = list.Subscribe([] {});
    if (i % 100 == 0) list.Replace({"spiffe://fleet-01.muster/user/ann"});
  }
  stop = true;
  asker.join();
  EXPECT_TRUE(list.IsRevoked(Ann()));
}

}  // namespace
}  // namespace muster
