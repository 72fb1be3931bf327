// The contract of every StateStore for identities and the audit log, included by
// state_store_contract.h.
#ifndef MUSTER_SERVICES_COMMON_STORE_CONTRACT_IDENTITY_CONTRACT_H_
#define MUSTER_SERVICES_COMMON_STORE_CONTRACT_IDENTITY_CONTRACT_H_

#include "services/common/base/error.h"
#include "services/common/store/contract/state_store_fixture.h"

namespace muster {

TEST_P(StateStoreContract, RevocationsAreStored) {
  const RevocationRecord revocation = {"spiffe://f.muster/user/bob", "left", "ann", 5};
  EXPECT_TRUE(Apply(Revoke{revocation}).changed);
  EXPECT_FALSE(Apply(Revoke{revocation}).changed);
  EXPECT_TRUE(Apply(Revoke{{"abcd:01", "", "ann", 6}}).changed);
  Reopen();
  auto all = store().Revocations();
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ((*all)[0].subject, "spiffe://f.muster/user/bob");
  EXPECT_EQ((*all)[0].reason, "left");
  EXPECT_EQ((*all)[0].revoked_by, "ann");
  EXPECT_EQ((*all)[0].at, 5);
  EXPECT_EQ(store().Audit("", "", 10)->items.size(), 2u);
}

TEST_P(StateStoreContract, IssuedCertificatesAreFoundByPrefix) {
  for (int i = 0; i < 5; ++i) {
    Apply(RecordIssued{{absl::StrCat("spiffe://f/user/u", i % 2), "issuer", absl::StrCat("s", i),
                        "ann", 100 + i, 200 + i}});
  }
  Apply(RecordIssued{{"spiffe://f/node/n", "issuer", "s9", "ann", 300, 400}});
  auto users = store().Issued("spiffe://f/user/", 10);
  ASSERT_EQ(users->size(), 5u);
  EXPECT_EQ((*users)[0].serial, "s4");
  EXPECT_EQ((*users)[0].issued_to, "ann");
  EXPECT_EQ((*users)[0].expires_at, 204);
  EXPECT_EQ(store().Issued("spiffe://f/user/u1", 1)->size(), 1u);
  EXPECT_EQ(store().Issued("", 100)->size(), 6u);
  // Certificates are deleted long after their expiry, a few with each new one.
  constexpr int64_t kYear = int64_t{365} * 24 * 3600 * 1'000'000;
  Apply(RecordIssued{{"spiffe://f/node/n", "issuer", "t1", "ann", kYear, 2 * kYear}});
  Apply(RecordIssued{{"spiffe://f/node/n", "issuer", "t2", "ann", kYear, 2 * kYear}});
  EXPECT_EQ(store().Issued("", 100)->size(), 2u);
}

TEST_P(StateStoreContract, AuditRecordsAreListedInOrder) {
  Plan(1);
  for (int i = 0; i < 5; ++i) {
    AuditRecord record;
    record.at = i;
    record.kind = AuditKind::kRefused;
    record.actor = "someone";
    record.key = KeyOf("n1");
    record.text = absl::StrCat("text ", i);
    Apply(AppendAudit{record});
  }
  std::string texts;
  std::string token;
  do {
    auto page = store().Audit(kRun, token, 2);
    for (const AuditRecord& record : page->items) texts += record.text + ",";
    token = page->next;
  } while (!token.empty());
  EXPECT_EQ(texts, "created,text 0,text 1,text 2,text 3,text 4,");
  auto page = store().Audit(kRun, "", 2);
  EXPECT_EQ(page->items[1].actor, "someone");
  EXPECT_EQ(page->items[1].key, KeyOf("n1"));
  EXPECT_EQ(ReasonOf(store().Audit(kRun, "zz", 2).status()), "INVALID_PAGE_TOKEN");
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_STORE_CONTRACT_IDENTITY_CONTRACT_H_
