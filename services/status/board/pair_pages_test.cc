#include "services/status/board/pair_pages.h"

#include <string>

#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

class PairPagesTest : public ::testing::Test {
 protected:
  PairPagesTest() { query_.page_size = 100; }

  Pair& Add(const std::string& plugin, const std::string& node) {
    return pairs_.Add(plugin, node, absl::ZeroDuration());
  }

  // Returns "facts/n1 facts/n2": the part after `position_`. Sets `end_`.
  std::string Part() {
    std::string bytes;
    PairWriter writer(v1::RunStatus::kPairsFieldNumber, &bytes);
    end_ = AddPagePart(pairs_, query_, PairView(Moment(), Outlook(), true), &position_, &writer);
    v1::RunStatus status;
    EXPECT_TRUE(status.ParseFromString(bytes));
    std::string text;
    for (const v1::PairStatus& pair : status.pairs()) {
      text += (text.empty() ? "" : " ") + pair.plugin() + "/" + pair.node();
    }
    return text;
  }

  PairTable pairs_;
  StatusQuery query_;
  PagePosition position_;
  PagePart end_ = PagePart::kMore;
};

TEST_F(PairPagesTest, PagesContinueAfterTheLastPair) {
  Add("logs", "n1");
  Add("facts", "n2");
  Add("facts", "n1");
  query_.page_size = 2;
  EXPECT_EQ(Part(), "facts/n1 facts/n2");
  EXPECT_EQ(end_, PagePart::kPageFull);
  EXPECT_EQ(ToPageToken(position_), "facts/n2");
  EXPECT_EQ(Part(), "logs/n1");
  EXPECT_EQ(end_, PagePart::kEnd);
}

TEST_F(PairPagesTest, FullLastPageIsTheEnd) {
  Add("facts", "n1");
  query_.page_size = 1;
  EXPECT_EQ(Part(), "facts/n1");
  EXPECT_EQ(end_, PagePart::kEnd);
}

TEST_F(PairPagesTest, PartReads256Pairs) {
  for (int i = 1000; i < 1300; ++i) Add("facts", "n" + std::to_string(i));
  pairs_.Find("facts", "n1299")->outcome = v1::OUTCOME_ERROR;
  query_.outcome = v1::OUTCOME_ERROR;
  EXPECT_EQ(Part(), "");
  EXPECT_EQ(end_, PagePart::kMore);
  EXPECT_EQ(position_.node, "n1255") << "pairs that do not match are read, too";
  EXPECT_EQ(Part(), "facts/n1299");
  EXPECT_EQ(end_, PagePart::kEnd);
}

TEST_F(PairPagesTest, PageEndsBeforeItIsTooLarge) {
  for (int i = 0; i < 9; ++i) {
    Add("facts", "n" + std::to_string(i)).error = std::string(size_t{1} << 20, 'x');
  }
  EXPECT_EQ(Part(), "facts/n0 facts/n1 facts/n2 facts/n3");
  EXPECT_EQ(end_, PagePart::kPageFull);
}

TEST_F(PairPagesTest, QuerySelectsPluginOutcomeAndReason) {
  Add("facts", "n1").reason = v1::REASON_STUCK;
  Add("facts", "n2").outcome = v1::OUTCOME_GENUINE;
  Add("logs", "n1").reason = v1::REASON_STUCK;
  query_.plugin = "facts";
  EXPECT_EQ(Part(), "facts/n1 facts/n2");
  position_ = {};
  query_.outcome = v1::OUTCOME_GENUINE;
  EXPECT_EQ(Part(), "facts/n2");
  position_ = {};
  query_ = {};
  query_.page_size = 100;
  query_.reasons = {v1::REASON_STUCK, v1::REASON_SLOW};
  EXPECT_EQ(Part(), "facts/n1 logs/n1");
}

TEST_F(PairPagesTest, PairWithAnOutcomeMatchesNoReason) {
  Pair& pair = Add("facts", "n1");
  pair.reason = v1::REASON_TIMED_OUT;
  pair.outcome = v1::OUTCOME_TIMED_OUT;
  query_.reasons = {v1::REASON_TIMED_OUT};
  EXPECT_EQ(Part(), "");
}

TEST_F(PairPagesTest, CallerSeesOnlyItsPair) {
  for (const char* plugin : {"facts", "logs"}) {
    for (const char* node : {"n1", "n2", "n3"}) Add(plugin, node);
  }
  query_.only_node = "n2";
  EXPECT_EQ(Part(), "facts/n2 logs/n2");
  position_ = {};
  query_.only_plugin = "logs";
  query_.plugin = "facts";
  EXPECT_EQ(Part(), "logs/n2");
  position_ = {};
  query_.only_node = "absent";
  EXPECT_EQ(Part(), "");
}

TEST_F(PairPagesTest, InvalidTokenIsRejected) {
  EXPECT_EQ(ParsePageToken("facts/n1")->node, "n1");
  EXPECT_EQ(ParsePageToken("")->plugin, "");
  for (const char* token : {"/", "facts", "/n1", "a/b/c"}) {
    EXPECT_EQ(ReasonOf(ParsePageToken(token).status()), "INVALID_PAGE_TOKEN") << token;
  }
}

}  // namespace
}  // namespace muster
