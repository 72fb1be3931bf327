#include "services/status/board/pair_change_log.h"

#include <array>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace muster {
namespace {

class PairChangeLogTest : public ::testing::Test {
 protected:
  void Change(size_t pair) { log_.Append(pairs_[pair], pairs_.size()); }

  // Returns the indices of the visited pairs, at most `count`.
  std::vector<size_t> Visit(uint64_t after, uint64_t until, size_t count = 100,
                            int limit = 100'000) {
    std::vector<size_t> visited;
    reached_ = log_.Visit(after, until, limit, [&](const Pair& pair) {
      if (visited.size() == count) return false;
      visited.push_back(static_cast<size_t>(&pair - pairs_.data()));
      return true;
    });
    return visited;
  }

  std::array<Pair, 3> pairs_;
  PairChangeLog log_;
  uint64_t reached_ = 0;
};

TEST_F(PairChangeLogTest, PairIsVisitedAtItsLatestChange) {
  for (const size_t pair : {0, 1, 2, 0}) Change(pair);
  EXPECT_EQ(log_.version(), 4u);
  EXPECT_EQ(Visit(0, log_.version()), (std::vector<size_t>{1, 2, 0}));
  EXPECT_EQ(reached_, 4u);
  EXPECT_EQ(Visit(2, log_.version()), (std::vector<size_t>{2, 0}));
  EXPECT_TRUE(Visit(4, log_.version()).empty());
}

TEST_F(PairChangeLogTest, ChangesAfterUntilAreNotVisited) {
  for (const size_t pair : {0, 1, 2}) Change(pair);
  EXPECT_EQ(Visit(0, 2), (std::vector<size_t>{0, 1}));
  EXPECT_EQ(reached_, 2u);
}

TEST_F(PairChangeLogTest, VisitResumesWhereItStopped) {
  for (const size_t pair : {0, 1, 2}) Change(pair);
  EXPECT_EQ(Visit(0, 3, /*count=*/1), (std::vector<size_t>{0}));
  EXPECT_EQ(Visit(reached_, 3), (std::vector<size_t>{1, 2}));
  EXPECT_EQ(Visit(0, 3, 100, /*limit=*/2), (std::vector<size_t>{0, 1}));
  EXPECT_EQ(reached_, 2u);
}

TEST_F(PairChangeLogTest, ObsoleteEntriesAreRemoved) {
  Change(1);
  Change(2);
  for (int i = 0; i < 10'000; ++i) Change(0);
  log_.Skip();
  EXPECT_LE(log_.size(), 2 * pairs_.size() + 1025);
  EXPECT_EQ(Visit(0, log_.version()), (std::vector<size_t>{1, 2, 0}));
  EXPECT_EQ(log_.version(), 10'003u);
}

}  // namespace
}  // namespace muster
