// The contract of every StateStore for identities and the audit log, included by
// state_store_contract.h.
#ifndef MUSTER_SERVICES_COMMON_STORE_CONTRACT_IDENTITY_CONTRACT_H_
#define MUSTER_SERVICES_COMMON_STORE_CONTRACT_IDENTITY_CONTRACT_H_

#include <future>
#include <string>

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
  EXPECT_EQ(store().Audit({}, "", 10)->items.size(), 2u);
  const auto of_bob = store().Audit({.subject = "spiffe://f.muster/user/bob"}, "", 10);
  ASSERT_EQ(of_bob->items.size(), 1u);
  EXPECT_EQ(of_bob->items[0].text, "revoked: left");
  EXPECT_EQ(of_bob->items[0].actor, "ann");
}

TEST_P(StateStoreContract, RecordsOfASubjectAreListedInBothOrders) {
  const auto issue = [&](const std::string& uri, const std::string& serial, int64_t at) {
    Apply(RecordIssued{{uri, "issuer", serial, "ann", at, at + 100}});
  };
  issue("spiffe://f/user/bob", "01", 10);
  issue("spiffe://f/user/eve", "02", 20);
  issue("spiffe://f/user/bob", "03", 30);
  AuditFilter filter = {.subject = "spiffe://f/user/bob"};
  auto page = store().Audit(filter, "", 10);
  ASSERT_EQ(page->items.size(), 2u);
  EXPECT_EQ(page->items[0].subject, "spiffe://f/user/bob");
  EXPECT_EQ(page->items[0].text, "issued certificate issuer:01");
  filter.newest_first = true;
  page = store().Audit(filter, "", 10);
  ASSERT_EQ(page->items.size(), 2u);
  EXPECT_EQ(page->items[0].text, "issued certificate issuer:03");
  filter.actor = "someone else";
  EXPECT_TRUE(store().Audit(filter, "", 10)->items.empty());
}

TEST_P(StateStoreContract, NewestCertificateOfEachIdentityIsFoundByPrefix) {
  for (int i = 0; i < 5; ++i) {
    Apply(RecordIssued{{absl::StrCat("spiffe://f/user/u", i % 2), "issuer", absl::StrCat("s", i),
                        "ann", 100 + i, 200 + i}});
  }
  Apply(RecordIssued{{"spiffe://f/node/n", "issuer", "s9", "ann", 300, 400}});
  const auto users = store().NewestOfEach("spiffe://f/user/");
  ASSERT_EQ(users->size(), 2u);
  EXPECT_EQ((*users)[0].serial, "s4");
  EXPECT_EQ((*users)[0].issued_to, "ann");
  EXPECT_EQ((*users)[0].issued_at, 104);
  EXPECT_EQ((*users)[0].expires_at, 204);
  EXPECT_EQ((*users)[1].serial, "s3");
  EXPECT_EQ(store().NewestOfEach("spiffe://f/user/u1")->size(), 1u);
  EXPECT_EQ(store().NewestOfEach("")->size(), 3u);
  // Certificates are deleted long after their expiry, a few with each new one.
  constexpr int64_t kYear = int64_t{365} * 24 * 3600 * 1'000'000;
  Apply(RecordIssued{{"spiffe://f/node/n", "issuer", "t1", "ann", kYear, 2 * kYear}});
  Apply(RecordIssued{{"spiffe://f/node/n", "issuer", "t2", "ann", kYear, 2 * kYear}});
  const auto left = store().NewestOfEach("");
  ASSERT_EQ(left->size(), 1u);
  EXPECT_FALSE(store().FindIssued("issuer", "s9").value());
}

TEST_P(StateStoreContract, RenewalsOfAnIdentityAreLimited) {
  const auto renew = [&](const std::string& uri, int serial, int64_t at) {
    return Apply(RecordIssued{
                     {uri, "issuer", absl::StrCat(uri, serial), uri, at, at + kRenewalWindow},
                     "",
                     "issuer:00"})
        .verdict;
  };
  using Verdict = RecordIssued::Verdict;
  const int64_t now = kRenewalWindow * 1000;
  for (int i = 0; i < kMaxRenewals; ++i) {
    EXPECT_EQ(renew("spiffe://f/user/ann", i, now + i), Verdict::kRecorded);
  }
  EXPECT_EQ(renew("spiffe://f/user/ann", 100, now + 100), Verdict::kTooMany);
  EXPECT_EQ(renew("spiffe://f/user/bob", 100, now + 100), Verdict::kRecorded);
  Reopen();
  EXPECT_EQ(renew("spiffe://f/user/ann", 100, now + 101), Verdict::kTooMany);
  EXPECT_EQ(renew("spiffe://f/user/ann", 100, now + kRenewalWindow), Verdict::kRecorded);
  // Only renewals are limited.
  EXPECT_EQ(
      Apply(RecordIssued{{"spiffe://f/user/ann", "issuer", "s", "bob", now, now + 1}}).verdict,
      Verdict::kRecorded);
}

TEST_P(StateStoreContract, RevokedCertificateIsNotRenewed) {
  const auto renew = [&](const std::string& uri, const std::string& renewed) {
    return Apply(RecordIssued{{uri, "issuer", uri + renewed, uri, 10, 20}, "", renewed}).verdict;
  };
  using Verdict = RecordIssued::Verdict;
  Apply(Revoke{{"issuer:01", "", "ann", 5}});
  Apply(Revoke{{"spiffe://f/user/bob", "", "ann", 5}});
  EXPECT_EQ(renew("spiffe://f/user/ann", "issuer:01"), Verdict::kRevoked);
  EXPECT_EQ(renew("spiffe://f/user/ann", "issuer:02"), Verdict::kRecorded);
  EXPECT_EQ(renew("spiffe://f/user/bob", "issuer:03"), Verdict::kRevoked);
}

TEST_P(StateStoreContract, RevokedUriGetsNoCertificate) {
  Apply(Revoke{{"spiffe://f/user/bob", "", "ann", 5}});
  const auto issue = [&](const std::string& uri) {
    return Apply(RecordIssued{{uri, "issuer", uri, "ann", 10, 20}}).verdict;
  };
  EXPECT_EQ(issue("spiffe://f/user/bob"), RecordIssued::Verdict::kRevoked);
  EXPECT_EQ(issue("spiffe://f/user/bob2"), RecordIssued::Verdict::kRecorded);
  EXPECT_EQ(store().NewestOfEach("spiffe://f/user/")->size(), 1u);
}

TEST_P(StateStoreContract, NewestCertificateOfAUriIsFound) {
  const auto issue = [&](const std::string& uri, const std::string& serial, int64_t at) {
    Apply(RecordIssued{{uri, "issuer", serial, "ann", at, at + 100}});
  };
  EXPECT_FALSE(store().NewestIssued("spiffe://f/user/bob")->has_value());
  issue("spiffe://f/user/bob", "01", 10);
  issue("spiffe://f/user/bob", "02", 20);
  issue("spiffe://f/user/bob2", "03", 30);
  EXPECT_EQ((*store().NewestIssued("spiffe://f/user/bob"))->serial, "02");
}

TEST_P(StateStoreContract, RevocationEndsLongAfterTheExpiryOfItsCertificate) {
  Apply(RecordIssued{{"spiffe://f/node/n", "issuer", "01", "ann", 10, 20}});
  Apply(RecordIssued{{"spiffe://f/node/n", "issuer", "02", "ann", 10, kIssuedKept}});
  Apply(Revoke{{"issuer:01", "", "ann", 15}});
  Apply(Revoke{{"issuer:02", "", "ann", 15}});
  Apply(Revoke{{"spiffe://f/user/bob", "", "ann", 15}});
  const int64_t late = kIssuedKept + 21;
  Apply(RecordIssued{{"spiffe://f/node/n", "issuer", "03", "ann", late, late + 10}});
  std::vector<std::string> left;
  const auto revocations = store().Revocations();
  for (const RevocationRecord& revocation : *revocations) left.push_back(revocation.subject);
  EXPECT_EQ(left, (std::vector<std::string>{"issuer:02", "spiffe://f/user/bob"}));
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
    auto page = store().Audit({.run = kRun}, token, 2);
    for (const AuditRecord& record : page->items) texts += record.text + ",";
    token = page->next;
  } while (!token.empty());
  EXPECT_EQ(texts, "created,text 0,text 1,text 2,text 3,text 4,");
  auto page = store().Audit({.run = kRun}, "", 2);
  EXPECT_EQ(page->items[1].actor, "someone");
  EXPECT_EQ(page->items[1].key, KeyOf("n1"));
  EXPECT_EQ(ReasonOf(store().Audit({.run = kRun}, "zz", 2).status()), "INVALID_PAGE_TOKEN");
}

TEST_P(StateStoreContract, RecordsOfTwoGatewaysAreNotCountedTogether) {
  const auto append = [&](const std::string& gateway, const ResultKey& key) {
    AuditRecord record;
    record.at = 1;
    record.kind = AuditKind::kRefused;
    record.SetActor({"ann", gateway});
    record.key = key;
    record.text = "refused";
    Apply(AppendAudit{.record = record});
  };
  for (const ResultKey& key : {ResultKey{}, KeyOf("n1")}) {
    append("g1", key);
    append("g1", key);
    append("g2", key);
    append("", key);
  }
  Reopen();
  const auto records = store().Audit({.actor = "ann"}, "", 10);
  ASSERT_EQ(records->items.size(), 6u);
  for (const size_t first : {0, 3}) {
    EXPECT_EQ(records->items[first].vouched_by, "g1");
    EXPECT_EQ(records->items[first].count, 2);
    EXPECT_EQ(records->items[first + 1].vouched_by, "g2");
    EXPECT_EQ(records->items[first + 2].vouched_by, "");
  }
}

// As when a call is repeated while the disk of the store is stalled.
TEST_P(StateStoreContract, AuditRecordThatWaitsIsNotStoredTwice) {
  std::promise<void> held, release;
  store().Apply(AppendAudit{}, [&](absl::StatusOr<AppendAudit::Result>) {
    held.set_value();
    release.get_future().wait();
  });
  held.get_future().wait();
  const auto append = [&](const std::string& actor, int64_t at) {
    AuditRecord record;
    record.at = at;
    record.kind = AuditKind::kJob;
    record.actor = actor;
    record.subject = "job";
    record.text = "submitted";
    store().Apply(AppendAudit{.record = record, .once = true},
                  [](const absl::StatusOr<AppendAudit::Result>& result) {
                    EXPECT_TRUE(result.ok()) << result.status();
                  });
  };
  append("ann", 1);
  append("ann", 2);
  append("bob", 3);
  append("ann", 4);
  release.set_value();
  Apply(AppendAudit{});  // after the others
  const auto stored = store().Audit({.subject = "job"}, "", 100);
  ASSERT_EQ(stored->items.size(), 2u);
  EXPECT_EQ(stored->items[0].actor, "ann");
  EXPECT_EQ(stored->items[0].count, 1);
  EXPECT_EQ(stored->items[1].actor, "bob");
}

TEST_P(StateStoreContract, AuditRecordsAreFiltered) {
  Plan(1);  // the first record: created by the run's creator at kCreated
  const auto append = [&](int64_t at, AuditKind kind, const std::string& actor,
                          const std::string& text) {
    AuditRecord record;
    record.at = kAuditFold + at;
    record.kind = kind;
    record.actor = actor;
    record.text = text;
    Apply(AppendAudit{record});
  };
  append(10, AuditKind::kShare, "ann", "a");
  append(20, AuditKind::kNode, "ann", "b");
  append(30, AuditKind::kNode, "bob", "c");
  append(40, AuditKind::kShare, "bob", "d");
  const auto texts = [&](const AuditFilter& filter, int limit = 100) {
    std::string all;
    std::string token;
    do {
      auto page = store().Audit(filter, token, limit);
      EXPECT_TRUE(page.ok()) << page.status();
      for (const AuditRecord& record : page->items) {
        if (record.key.run.empty()) all += record.text;
      }
      token = page->next;
    } while (!token.empty());
    return all;
  };
  EXPECT_EQ(texts({}), "abcd");
  EXPECT_EQ(texts({.actor = "ann"}), "ab");
  EXPECT_EQ(texts({.kinds = {AuditKind::kShare}}), "ad");
  EXPECT_EQ(texts({.kinds = {AuditKind::kShare, AuditKind::kNode}}), "abcd");
  EXPECT_EQ(texts({.actor = "bob", .kinds = {AuditKind::kNode}}), "c");
  EXPECT_EQ(texts({.run = kRun}), "");
  EXPECT_EQ(texts({.since = kAuditFold + 20}), "bcd");
  EXPECT_EQ(texts({.since = kAuditFold + 20, .until = kAuditFold + 40}), "bc");
  EXPECT_EQ(texts({.newest_first = true}, 1), "dcba");
  EXPECT_EQ(texts({.actor = "ann", .newest_first = true}, 1), "ba");
  const int64_t second = store().Audit({.actor = "ann"}, "", 2)->items[1].sequence;
  EXPECT_EQ(texts({.after = second}, 1), "cd");
  EXPECT_EQ(texts({.after = second, .newest_first = true}, 1), "dc");
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_STORE_CONTRACT_IDENTITY_CONTRACT_H_
