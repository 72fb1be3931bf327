#include "services/relay/files/share_queries.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/relay/files/share_store_fixture.h"
#include "services/relay/files/share_test_util.h"
#include "services/relay/testing/recorded_link.h"
#include "services/relay/topology/topology.h"

namespace muster {
namespace {

class ShareQueriesTest : public ShareStoreFixture {
 protected:
  // Sends a query; returns its id.
  std::string Ask(const std::string& relay) {
    v1::ShareQuery query;
    query.set_relay(relay);
    query.mutable_list();
    queries_.Ask(query, [this](const auto& answer) {
      answers_.push_back(answer.ok() ? "answer of " + answer->relay() : ReasonOf(answer.status()));
    });
    const auto sent = link_->Take();
    return sent.empty() ? "" : sent[0].share_query().id();
  }

  void Answer(const std::string& id, const std::string& relay) {
    v1::AnswerShareQueryRequest answer;
    answer.set_id(id);
    answer.set_relay(relay);
    queries_.HandleAnswer(answer);
  }

  void Advance(absl::Duration by) {
    clock_.Advance(by);
    executor_->AwaitIdle();
  }

  std::vector<std::string> Answers() { return std::exchange(answers_, {}); }

  FileSigner signer_{clock_.Now()};
  Topology tree_{{"root", true}, clock_};
  std::shared_ptr<RecordedLink> link_ = std::make_shared<RecordedLink>();
  const bool attached_ =
      tree_.Attach(AttachedEntry("r2", "root", clock_.Now(), /*is_relay=*/true), link_).ok();
  NoPeers peers_;
  FakeRouting routing_;
  const ShareParts parts_{*store_, tree_, clock_, kShareFleet, true, peers_, signer_};
  const LocalShareIndex index_{parts_, routing_};
  std::vector<std::string> answers_;
  ShareQueries queries_{parts_, index_, clock_, *executor_};
};

using Strings = std::vector<std::string>;

TEST_F(ShareQueriesTest, AnswerEndsItsQuery) {
  const std::string first = Ask("r2");
  const std::string second = Ask("r2");
  ASSERT_FALSE(first.empty());
  EXPECT_NE(first, second);
  Answer(second, "r2");
  EXPECT_EQ(Answers(), Strings{"answer of r2"});
  Answer(second, "r2");
  EXPECT_EQ(Answers(), Strings());
  Answer(first, "r2");
  EXPECT_EQ(Answers(), Strings{"answer of r2"});
}

TEST_F(ShareQueriesTest, AnswerOfAnotherRelayIsIgnored) {
  const std::string id = Ask("r2");
  Answer(id, "r3");
  EXPECT_EQ(Answers(), Strings());
  Answer(id, "r2");
  EXPECT_EQ(Answers(), Strings{"answer of r2"});
}

TEST_F(ShareQueriesTest, EachQueryEndsTenSecondsAfterItsStart) {
  const std::string first = Ask("r2");
  Advance(absl::Seconds(6));
  Ask("r2");
  Advance(absl::Seconds(3));
  EXPECT_EQ(Answers(), Strings());
  Advance(absl::Seconds(1));
  EXPECT_EQ(Answers(), Strings{"RELAY_NOT_REACHED"});
  Answer(first, "r2");
  EXPECT_EQ(Answers(), Strings());
  Advance(absl::Seconds(6));
  EXPECT_EQ(Answers(), Strings{"RELAY_NOT_REACHED"});
}

TEST_F(ShareQueriesTest, AnsweredQueryDoesNotExpire) {
  Answer(Ask("r2"), "r2");
  Advance(absl::Seconds(5));
  Ask("r2");
  Answers();
  Advance(absl::Seconds(9));
  EXPECT_EQ(Answers(), Strings());
  Advance(absl::Seconds(1));
  EXPECT_EQ(Answers(), Strings{"RELAY_NOT_REACHED"});
}

TEST_F(ShareQueriesTest, UnknownRelayIsNotAsked) {
  EXPECT_EQ(Ask("r9"), "");
  EXPECT_EQ(Answers().size(), 1u);
}

TEST_F(ShareQueriesTest, TooManyQueriesAreRefused) {
  for (int i = 0; i < 64; ++i) Ask("r2");
  EXPECT_EQ(Answers(), Strings());
  EXPECT_EQ(Ask("r2"), "");
  EXPECT_EQ(Answers(), Strings{"OVERLOADED"});
}

TEST_F(ShareQueriesTest, StopEndsAllQueries) {
  Ask("r2");
  Ask("r2");
  queries_.Stop();
  EXPECT_EQ(Answers(), (Strings{"RELAY_NOT_REACHED", "RELAY_NOT_REACHED"}));
}

}  // namespace
}  // namespace muster
