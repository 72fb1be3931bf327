#include "services/aggregator/runs/run_log.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "services/common/store/sqlite/sqlite_harness.h"

namespace muster {
namespace {

class RunLogTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(harness_.Open().ok()); }

  void Note(AuditKind kind, const std::string& node, const std::string& text) {
    AuditRecord record;
    record.at = 90'000'000;
    record.kind = kind;
    record.actor = "spiffe://f.muster/node/n1";
    record.key = {.run = kRun, .plugin = node.empty() ? "" : "facts", .node = node};
    record.text = text;
    ASSERT_TRUE(harness_.state().ApplyAndWait(AppendAudit{std::move(record)}).ok());
  }

  std::vector<nlohmann::json> Lines(size_t max_bytes = 1 << 20) {
    std::vector<nlohmann::json> lines;
    std::istringstream log(RunLog(harness_.state(), kRun, max_bytes).value());
    for (std::string line; std::getline(log, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  SqliteHarness harness_;
};

TEST_F(RunLogTest, LogContainsTheRecordsInOrder) {
  Note(AuditKind::kRun, "", "created");
  Note(AuditKind::kConflict, "n1", "");
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0]["text"], "created");
  EXPECT_EQ(lines[0]["level"], "info");
  EXPECT_FALSE(lines[0].contains("node"));
  EXPECT_EQ(lines[1]["time"], "1970-01-01T00:01:30+00:00");
  EXPECT_EQ(lines[1]["level"], "warning");
  EXPECT_EQ(lines[1]["by"], "spiffe://f.muster/node/n1");
  EXPECT_EQ(lines[1]["plugin"], "facts");
  EXPECT_EQ(lines[1]["node"], "n1");
}

TEST_F(RunLogTest, TextsAreCleanedAndStayOnOneLine) {
  Note(AuditKind::kRefused, "n1", "a line\nanother \xff");
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0]["text"], "a line\nanother \uFFFD");
}

TEST_F(RunLogTest, EqualRecordsHaveOneLineWithTheirNumber) {
  for (int i = 0; i < 5; ++i) Note(AuditKind::kRefused, "n1", "x");
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0]["count"], 5);
}

TEST_F(RunLogTest, OmittedRecordsAreReported) {
  for (int i = 0; i < 5; ++i) Note(AuditKind::kRefused, "n1", std::to_string(i));
  const size_t whole = RunLog(harness_.state(), kRun).value().size();
  EXPECT_EQ(Lines(whole).size(), 5U);
  const auto lines = Lines(whole - 1);
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[4]["msg"], "more was left out here");
}

}  // namespace
}  // namespace muster
