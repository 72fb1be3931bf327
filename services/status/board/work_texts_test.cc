// The texts of pairs on a board: what one credential may store.
#include "services/status/board/work_texts.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/status/board/board_fixture.h"

namespace muster {
namespace {

using testing::kRun;

class WorkTextsTest : public testing::BoardFixture {
 protected:
  // As large as a report may be: about 200 KiB.
  static v1::ReportProgressRequest Large(const std::string& node) {
    v1::ReportProgressRequest report;
    *report.mutable_key() = Key(node);
    report.set_message(std::string(4096, 'm'));
    for (int i = 0; i < 100; ++i) {
      report.add_failures(std::string(1024, 'f'));
      report.add_errors(std::string(1024, 'e'));
    }
    return report;
  }

  v1::PairStatus PairOf(const std::string& node) {
    v1::RunStatus status;
    StatusQuery query;
    query.run = kRun;
    query.only_node = node;
    query.page_size = 1;
    EXPECT_TRUE(Ask(query, &status).ok());
    EXPECT_EQ(status.pairs_size(), 1);
    return status.pairs_size() == 1 ? status.pairs(0) : v1::PairStatus();
  }

  // Returns the number of changes of pairs of the run.
  uint64_t Version() {
    const auto run = board_.Find(kRun);
    EXPECT_TRUE(run.ok());
    return run.ok() ? (*run)->Newest().version : 0;
  }

  // Starts a run of `count` pairs, of which each has a large report.
  void Fill(int count) {
    std::vector<std::string> nodes;
    for (int i = 0; i < count; ++i) nodes.push_back(absl::StrCat("n", i));
    Start(nodes);
    for (const std::string& node : nodes) ASSERT_TRUE(board_.Report(Large(node)).ok());
  }

  // The same, and leaves less than 64 bytes of the memory for texts. "n120" has no long text.
  void FillUp() {
    Fill(121);
    const auto send = [&](int first, int end, size_t cost) {
      for (int i = first; i < end; ++i) {
        const auto sender = Online(absl::StrCat("n", i));
        ASSERT_TRUE(SendHeartbeat(sender, v1::PHASE_BLOCKED, std::string(256 + cost, 'b')).ok());
      }
    };
    send(40, 100, 3800);
    send(100, 110, 400);
    send(110, 120, 64);
    ASSERT_GT(board_.texts().used() + 64, kTextBytesOfPlugin);
  }
};

TEST_F(WorkTextsTest, ReportsOfAllNodesOfAPluginTakeLimitedMemory) {
  Fill(100);
  EXPECT_LE(board_.texts().used(), kTextBytesOfPlugin);
  EXPECT_GT(board_.texts().shortened(), 0u);
  const v1::Progress full = PairOf("n0").progress();
  EXPECT_EQ(full.failures_size(), 100);
  EXPECT_EQ(full.omitted_failures(), 0);
  const v1::Progress shortened = PairOf("n99").progress();
  EXPECT_EQ(shortened.failures_size(), 0);
  EXPECT_EQ(shortened.omitted_failures(), 100);
  EXPECT_EQ(shortened.omitted_errors(), 100);
  EXPECT_LE(shortened.message().size(), 256u);
  EXPECT_TRUE(shortened.message().ends_with("m…")) << shortened.message();
}

TEST_F(WorkTextsTest, PairWithoutRoomKeepsItsNewestNames) {
  Fill(100);
  v1::ReportProgressRequest more;
  *more.mutable_key() = Key("n0");
  for (int i = 0; i < 10; ++i) more.add_append_failing(std::string(1024, 'g'));
  ASSERT_TRUE(board_.Report(more).ok());
  const v1::Progress progress = PairOf("n0").progress();
  EXPECT_EQ(progress.failures_size() + progress.omitted_failures(), 110);
  ASSERT_GE(progress.failures_size(), 90);
  EXPECT_EQ(progress.failures(progress.failures_size() - 1).front(), 'g');
}

TEST_F(WorkTextsTest, ShortTextsAreStoredInAnyCase) {
  Fill(100);
  ASSERT_TRUE(SendHeartbeat(Online("n99"), v1::PHASE_BLOCKED, "waits for the lease").ok());
  EXPECT_EQ(PairOf("n99").detail(), "waits for the lease");
  v1::ReportProgressRequest report;
  *report.mutable_key() = Key("n99");
  report.set_message("half");
  report.set_completed(5);
  ASSERT_TRUE(board_.Report(report).ok());
  EXPECT_EQ(PairOf("n99").progress().message(), "half");
  EXPECT_EQ(PairOf("n99").progress().omitted_failures(), 0) << "a plain report replaces the count";
}

TEST_F(WorkTextsTest, MessagesAndFaultsOfHeartbeatsTakeLimitedMemory) {
  Fill(100);
  for (int i = 50; i < 100; ++i) {
    const auto sender = Online(absl::StrCat("n", i));
    ASSERT_TRUE(SendHeartbeat(sender, v1::PHASE_BLOCKED, std::string(4000, 'b')).ok());
  }
  EXPECT_LE(board_.texts().used(), kTextBytesOfPlugin);
  const std::string detail = PairOf("n99").detail();
  EXPECT_LE(detail.size(), 256u);
  EXPECT_TRUE(detail.ends_with("b…")) << detail;
}

TEST_F(WorkTextsTest, RepeatedLongTextIsNoChange) {
  FillUp();
  const auto sender = Online("n120");
  const auto send = [&](char last) {
    ASSERT_TRUE(SendHeartbeat(sender, v1::PHASE_BLOCKED, std::string(1000, 'b') + last).ok());
  };
  send('1');
  ASSERT_TRUE(PairOf("n120").detail().ends_with("b…"));
  const uint64_t before = Version();
  send('1');
  EXPECT_EQ(Version(), before);
  send('2');
  EXPECT_NE(Version(), before) << "a change of the part that is not stored";
}

TEST_F(WorkTextsTest, RepeatedLongTextIsStoredInFullWhenThereIsRoomAgain) {
  FillUp();
  const auto sender = Online("n120");
  const std::string text(1000, 'b');
  ASSERT_TRUE(SendHeartbeat(sender, v1::PHASE_BLOCKED, text).ok());
  ASSERT_TRUE(PairOf("n120").detail().ends_with("b…"));
  ASSERT_TRUE(Report("n0", 1, 1).ok());
  const uint64_t before = Version();
  ASSERT_TRUE(SendHeartbeat(sender, v1::PHASE_BLOCKED, text).ok());
  EXPECT_EQ(PairOf("n120").detail(), text);
  EXPECT_NE(Version(), before);
}

TEST_F(WorkTextsTest, RepeatedReportWithAShortenedMessageIsStuck) {
  FillUp();
  const auto sender = Online("n120");
  ASSERT_TRUE(SendHeartbeat(sender).ok());
  v1::ReportProgressRequest report;
  *report.mutable_key() = Key("n120");
  report.set_completed(5);
  report.set_message(std::string(1000, 'm'));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(board_.Report(report).ok());
    ASSERT_TRUE(PairOf("n120").progress().message().ends_with("m…"));
    Pass(kStuckAtLeast / 2);
  }
  EXPECT_EQ(ReasonOfPair("n120"), "STUCK");
}

TEST_F(WorkTextsTest, RemovedRunReleasesItsTexts) {
  Fill(100);
  EXPECT_GT(board_.texts().used(), 0u);
  DeleteRun();
  EXPECT_EQ(board_.texts().used(), 0u);
}

}  // namespace
}  // namespace muster
