// The contract of every StateStore for join tokens and nodes, included by state_store_contract.h.
#ifndef MUSTER_SERVICES_COMMON_STORE_CONTRACT_NODE_CONTRACT_H_
#define MUSTER_SERVICES_COMMON_STORE_CONTRACT_NODE_CONTRACT_H_

#include "services/common/store/contract/state_store_fixture.h"

namespace muster {

class NodeStoreContract : public StateStoreContract {
 protected:
  static constexpr int64_t kEnd = 1000;  // of the tokens here

  CreateJoinToken::Verdict Create(const std::string& id, const std::string& node, int count = 1,
                                  Labels labels = {}) {
    JoinTokenRecord token;
    token.id = id;
    token.public_key_pem = "pem";
    token.node = node;
    token.count = count;
    token.labels = std::move(labels);
    token.created_by = "ann";
    token.created_at = 10;
    token.expires_at = kEnd;
    return Apply(CreateJoinToken{std::move(token)}).verdict;
  }

  // Joins with a certificate whose serial is the key's name.
  JoinNode::Result Join(const std::string& token, const std::string& node, const std::string& key,
                        int64_t at = 20) {
    JoinNode join;
    join.token = token;
    join.name = node;
    join.key_sha256 = key;
    join.certificate_chain_pem = absl::StrCat("chain of ", key);
    join.issued = {absl::StrCat("spiffe://f/node/", node), "issuer", key, "somebody", at, at + 100};
    return Apply(std::move(join));
  }

  NodeRecord Node(const std::string& name) {
    auto node = store().GetNode(name);
    EXPECT_TRUE(node.ok() && node->has_value()) << name << " " << node.status();
    return node.ok() && *node ? **node : NodeRecord{};
  }

  std::string Revoked() {
    std::string subjects;
    auto revocations = store().Revocations();
    EXPECT_TRUE(revocations.ok());
    for (const RevocationRecord& r : *revocations) absl::StrAppend(&subjects, r.subject, ",");
    return subjects;
  }

  using Verdict = JoinNode::Verdict;
};

TEST_P(NodeStoreContract, NamedTokenEnrolsItsNodeOnce) {
  EXPECT_EQ(Create("t", "n1", 1, {{"rack", "b=1"}, {"zone", ""}}),
            CreateJoinToken::Verdict::kCreated);
  EXPECT_EQ(Create("t", "n1"), CreateJoinToken::Verdict::kExists);
  EXPECT_EQ(Join("t", "n2", "k").verdict, Verdict::kOtherNode);
  EXPECT_EQ(Join("u", "n1", "k").verdict, Verdict::kNoToken);
  EXPECT_EQ(Join("t", "n1", "k").verdict, Verdict::kJoined);
  Reopen();
  const NodeRecord node = Node("n1");
  EXPECT_EQ(node.uri, "spiffe://f/node/n1");
  EXPECT_EQ(node.labels, (Labels{{"rack", "b=1"}, {"zone", ""}}));
  EXPECT_EQ(node.joined_at, 20);
  EXPECT_EQ(node.join_token, "t");
  EXPECT_EQ(node.expires_at, 120);
  EXPECT_EQ((*store().GetJoinToken("t"))->joined, std::vector<std::string>{"n1"});
  EXPECT_EQ(store().NewestOfEach("spiffe://f/node/")->size(), 1u);
  // The same key asks again because the response was lost.
  const auto again = Join("t", "n1", "k", 30);
  EXPECT_EQ(again.verdict, Verdict::kAgain);
  EXPECT_EQ(again.certificate_chain_pem, "chain of k");
  EXPECT_EQ(Join("t", "n2", "k", 30).verdict, Verdict::kOtherNode);
  EXPECT_EQ(Join("t", "n1", "k", kEnd).verdict, Verdict::kExpired);
  EXPECT_EQ(Join("t", "n1", "thief", 30).verdict, Verdict::kUsed);
  EXPECT_EQ(Join("t", "n1", "thief", 31).verdict, Verdict::kUsed) << "it repeats its request";
  EXPECT_EQ(store().NewestOfEach("spiffe://f/node/")->size(), 1u);
  const AuditRecord refused = store().Audit({}, "", 100)->items.back();
  EXPECT_EQ(refused.text, "join token t was used again, by another key");
  EXPECT_EQ(refused.count, 2);
  const auto of_node = store().Audit({.subject = "spiffe://f/node/n1"}, "", 100);
  ASSERT_EQ(of_node->items.size(), 1u);
  EXPECT_EQ(of_node->items[0].text, "joined with token t");
}

TEST_P(NodeStoreContract, TokenForSeveralNodesHasThatManyUses) {
  Create("t", "", 2);
  EXPECT_EQ(Join("t", "n1", "k1").verdict, Verdict::kJoined);
  EXPECT_EQ(Join("t", "n1", "k2").verdict, Verdict::kEnrolled);
  EXPECT_EQ(Join("t", "n2", "k2").verdict, Verdict::kJoined);
  EXPECT_EQ(Join("t", "n3", "k3").verdict, Verdict::kUsed);
  EXPECT_EQ((*store().GetJoinToken("t"))->joined, (std::vector<std::string>{"n1", "n2"}));
  EXPECT_EQ((*store().GetJoinToken("t"))->joined_count, 2);
}

TEST_P(NodeStoreContract, TokenListsTheLastJoinedNodes) {
  Create("t", "", 30);
  for (int i = 0; i < 25; ++i) {
    Join("t", absl::StrCat("n", 10 + i), absl::StrCat("k", i), 20 + i);
  }
  const auto token = store().GetJoinToken("t");
  EXPECT_EQ((*token)->joined_count, 25);
  ASSERT_EQ((*token)->joined.size(), static_cast<size_t>(kListedJoins));
  EXPECT_EQ((*token)->joined.front(), "n15");
  EXPECT_EQ((*token)->joined.back(), "n34");
}

TEST_P(NodeStoreContract, ExpiredTokenIsRefused) {
  Create("t", "", 2);
  EXPECT_EQ(Join("t", "n1", "k1", kEnd - 1).verdict, Verdict::kJoined);
  EXPECT_EQ(Join("t", "n2", "k2", kEnd).verdict, Verdict::kExpired);
  EXPECT_TRUE(Apply(RevokeJoinToken{"t", "ann", 40}).found);
  EXPECT_FALSE(Apply(RevokeJoinToken{"u", "ann", 40}).found);
  EXPECT_EQ(Join("t", "n2", "k2").verdict, Verdict::kNoToken);
  EXPECT_EQ(Join("t", "n1", "k1").verdict, Verdict::kNoToken);
  EXPECT_EQ(Node("n1").name, "n1");
  EXPECT_EQ(store().ListJoinTokens(10)->size(), 1u);
  // A token is deleted a week after its expiry.
  JoinTokenRecord later;
  later.id = "u";
  later.created_at = kEnd + int64_t{7} * 24 * 3600 * 1'000'000 + 1;
  Apply(CreateJoinToken{later});
  const auto tokens = store().ListJoinTokens(10);
  ASSERT_EQ(tokens->size(), 1u);
  EXPECT_EQ((*tokens)[0].id, "u");
}

TEST_P(NodeStoreContract, RepeatedJoinRevokesEarlierCertificates) {
  Create("t", "n1");
  Create("u", "n1", 1, {{"rack", "b2"}});
  Join("t", "n1", "k1");
  Apply(LabelNode{"n1", {{"rack", "b1"}, {"zone", "z"}}, {}, 64, "ann", 21});
  EXPECT_EQ(Join("u", "n1", "k2", 30).verdict, Verdict::kJoined);
  EXPECT_EQ(Revoked(), "issuer:k1,");
  EXPECT_EQ(Node("n1").labels, (Labels{{"rack", "b2"}, {"zone", "z"}}));
  EXPECT_EQ(Node("n1").join_token, "u");
}

TEST_P(NodeStoreContract, RevokedNodeGetsNoCertificate) {
  Create("t", "n1");
  Create("u", "n1");
  Join("t", "n1", "k1");
  const IssuedRecord next = {"spiffe://f/node/n1", "issuer", "k2", "n1", 30, 130};
  EXPECT_EQ(Apply(RecordIssued{next, "n1"}).verdict, RecordIssued::Verdict::kRecorded);
  EXPECT_EQ(Node("n1").expires_at, 130);
  ASSERT_TRUE((*store().FindIssued("issuer", "k2")).has_value());
  EXPECT_EQ((*store().FindIssued("issuer", "k2"))->issued_at, 30);
  EXPECT_FALSE((*store().FindIssued("issuer", "k9")).has_value());
  EXPECT_EQ(store().Audit({}, "", 100)->items.size(), 3u);  // without renewals
  EXPECT_FALSE(Apply(RevokeNode{"n2", "", "ann", 40}).found);
  EXPECT_TRUE(Apply(RevokeNode{"n1", "stolen", "ann", 125}).found);
  EXPECT_EQ(Revoked(), "issuer:k2,");  // the other has expired
  EXPECT_TRUE(Apply(RevokeNode{"n1", "again", "bob", 126}).found);
  EXPECT_EQ(Node("n1").revoked_at, 125);
  EXPECT_EQ(Node("n1").revoke_reason, "stolen");
  EXPECT_EQ(Node("n1").revoked_by, "ann");
  EXPECT_EQ(Join("u", "n1", "k3", 130).verdict, Verdict::kRevoked);
  EXPECT_EQ(Create("v", "n1"), CreateJoinToken::Verdict::kNodeRevoked);
  const IssuedRecord third = {"spiffe://f/node/n1", "issuer", "k3", "n1", 130, 230};
  EXPECT_EQ(Apply(RecordIssued{third, "n1"}).verdict, RecordIssued::Verdict::kRevoked);
  EXPECT_EQ(Apply(RecordIssued{third, "n9"}).verdict, RecordIssued::Verdict::kNotEnrolled);
}

TEST_P(NodeStoreContract, NameOfARemovedNodeCanBeUsedAgain) {
  Create("t", "n1");
  Join("t", "n1", "k1");
  EXPECT_TRUE(Apply(RemoveNode{"n1", "ann", 30}).found);
  EXPECT_FALSE(Apply(RemoveNode{"n1", "ann", 31}).found);
  EXPECT_EQ(Revoked(), "issuer:k1,");
  EXPECT_FALSE((*store().GetNode("n1")).has_value());
  // The earlier token has no uses left.
  EXPECT_EQ(Join("t", "n1", "k1", 32).verdict, Verdict::kRevoked);
  Create("u", "", 1);
  EXPECT_EQ(Join("u", "n1", "k2", 33).verdict, Verdict::kJoined);
  // The earlier token does not return its revoked certificate.
  EXPECT_EQ(Join("t", "n1", "k1", 34).verdict, Verdict::kRevoked);
  EXPECT_EQ(Join("u", "n1", "k2", 35).verdict, Verdict::kAgain);
}

TEST_P(NodeStoreContract, RelaysAndNodesShareTheirNames) {
  JoinTokenRecord token;
  token.id = "t";
  token.node = "r1";
  token.relay = true;
  token.created_at = 10;
  token.expires_at = kEnd;
  EXPECT_EQ(Apply(CreateJoinToken{token}).verdict, CreateJoinToken::Verdict::kCreated);
  JoinNode join;
  join.token = "t";
  join.name = "r1";
  join.key_sha256 = "k1";
  join.issued = {"spiffe://f/service/relay/r1", "issuer", "k1", "somebody", 20, 120};
  join.relay_targets = {"10.0.0.1:7445", "r1.example:7445"};
  join.join_targets = {"10.0.0.1:7446"};
  EXPECT_EQ(Apply(join).verdict, Verdict::kJoined);
  Reopen();
  EXPECT_TRUE((*store().GetJoinToken("t"))->relay);
  const NodeRecord relay = Node("r1");
  EXPECT_TRUE(relay.relay);
  EXPECT_EQ(relay.relay_targets, join.relay_targets);
  EXPECT_EQ(relay.join_targets, join.join_targets);
  EXPECT_TRUE(relay.parents.empty());
  EXPECT_TRUE(store().ListNodes({}, "", 10)->items.at(0).relay);
  // A name has one kind: a token that names it does not turn a relay into a node.
  Create("u", "r1");
  EXPECT_EQ(Join("u", "r1", "k2").verdict, Verdict::kEnrolled);
  EXPECT_EQ(Node("r1").uri, "spiffe://f/service/relay/r1");
  // The relay joins again at another address.
  token.id = "v";
  Apply(CreateJoinToken{token});
  join.token = "v";
  join.key_sha256 = join.issued.serial = "k3";
  join.relay_targets = {"10.0.0.2:7445"};
  EXPECT_EQ(Apply(join).verdict, Verdict::kJoined);
  EXPECT_EQ(Node("r1").relay_targets, join.relay_targets);
  EXPECT_EQ(Revoked(), "issuer:k1,");
  EXPECT_TRUE(Apply(RevokeNode{"r1", "", "ann", 40}).found);
  EXPECT_EQ(Revoked(), "issuer:k1,issuer:k3,");
}

TEST_P(NodeStoreContract, ParentsMustBeEnrolledRelays) {
  JoinTokenRecord relay;
  relay.id = "t";
  relay.node = "r1";
  relay.relay = true;
  relay.expires_at = kEnd;
  Apply(CreateJoinToken{relay});
  JoinTokenRecord token;
  token.id = "u";
  token.node = "n1";
  token.parents = {"r1"};
  token.expires_at = kEnd;
  const auto without = Apply(CreateJoinToken{token});
  EXPECT_EQ(without.verdict, CreateJoinToken::Verdict::kNoRelay);
  EXPECT_EQ(without.relay, "r1");
  JoinNode join;
  join.token = "t";
  join.name = "r1";
  join.key_sha256 = "k1";
  join.issued = {"spiffe://f/service/relay/r1", "issuer", "k1", "somebody", 20, 120};
  Apply(join);
  Create("x", "n2");
  Join("x", "n2", "kx");
  token.parents = {"r1", "n2"};
  EXPECT_EQ(Apply(CreateJoinToken{token}).relay, "n2") << "a node is none";
  token.parents = {"r1"};
  EXPECT_EQ(Apply(CreateJoinToken{token}).verdict, CreateJoinToken::Verdict::kCreated);
  EXPECT_EQ((*store().GetJoinToken("u"))->parents, token.parents);
  EXPECT_EQ(Join("u", "n1", "k2").verdict, Verdict::kJoined);
  EXPECT_EQ(Node("n1").parents, token.parents);
  EXPECT_FALSE(Node("n1").relay);
  Apply(RevokeNode{"r1", "", "ann", 40});
  token.id = "v";
  EXPECT_EQ(Apply(CreateJoinToken{token}).verdict, CreateJoinToken::Verdict::kNoRelay);
}

TEST_P(NodeStoreContract, NodesAreListedByNameAndLabels) {
  Create("t", "", 5);
  for (int i = 0; i < 5; ++i) {
    const std::string name = absl::StrCat("n", i);
    Join("t", name, absl::StrCat("k", i));
    Apply(LabelNode{name, {{"odd", i % 2 == 0 ? "no" : "yes"}, {"x", "1"}}, {}, 64, "ann", 30});
  }
  std::string names;
  std::string token;
  do {
    auto page = store().ListNodes({}, token, 2);
    for (const NodeRecord& node : page->items) absl::StrAppend(&names, node.name, ",");
    token = page->next;
  } while (!token.empty());
  EXPECT_EQ(names, "n0,n1,n2,n3,n4,");
  auto odd = store().ListNodes({{"odd", "yes"}, {"x", "1"}}, "", 10);
  ASSERT_EQ(odd->items.size(), 2u);
  EXPECT_EQ(odd->items[1].name, "n3");
  EXPECT_TRUE(store().ListNodes({{"x", "2"}}, "", 10)->items.empty());
  // Labels are stored unchanged; a request with one too many changes nothing.
  EXPECT_TRUE(Apply(LabelNode{"n1", {}, {"x", "unknown"}, 64, "ann", 31}).found);
  EXPECT_EQ(Node("n1").labels, (Labels{{"odd", "yes"}}));
  EXPECT_TRUE(Apply(LabelNode{"n1", {{"a", ""}, {"b", ""}}, {}, 2, "ann", 32}).too_many);
  EXPECT_EQ(Node("n1").labels, (Labels{{"odd", "yes"}}));
  EXPECT_FALSE(Apply(LabelNode{"n9", {}, {}, 64, "ann", 33}).found);
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_STORE_CONTRACT_NODE_CONTRACT_H_
