// The space that an idle store returns to the disk.
#include <gtest/gtest.h>

#include <filesystem>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "services/common/store/sqlite/sqlite_harness.h"

namespace muster {
namespace {

TEST(WriterHousekeepingTest, IdleStoreTruncatesALargeLog) {
  SqliteHarness harness;
  ASSERT_TRUE(harness.Open().ok());
  constexpr int kResults = 300;
  std::vector<PlannedPair> pairs;
  for (int i = 0; i < kResults; ++i) pairs.push_back({"facts", absl::StrCat("n", i)});
  ASSERT_TRUE(harness.state().ApplyAndWait(MakeRun(kRun, pairs)).ok());
  // A callback blocks the store's thread, so that one transaction holds all results.
  std::promise<void> held, release, last;
  harness.state().Apply(AppendAudit{}, [&](absl::StatusOr<AppendAudit::Result>) {
    held.set_value();
    release.get_future().wait();
  });
  held.get_future().wait();
  for (int i = 0; i < kResults; ++i) {
    auto command = Genuine(KeyOf(absl::StrCat("n", i)), std::string(60'000, 'x'));
    harness.state().Apply(std::move(command), [&, i](const auto& result) {
      EXPECT_TRUE(result.ok()) << result.status();
      if (i + 1 < kResults) return;
      EXPECT_GT(std::filesystem::file_size(harness.path() + "-wal"), 8u << 20);
      last.set_value();
    });
  }
  release.set_value();
  last.get_future().wait();
  harness.sqlite().AwaitIdle();
  EXPECT_LE(std::filesystem::file_size(harness.path() + "-wal"), 8u << 20);
}

}  // namespace
}  // namespace muster
