// When a database is created, and when one is missing.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "services/common/base/error.h"
#include "services/common/store/sqlite/sqlite_harness.h"

namespace muster {
namespace {

TEST(StoreCreationTest, LostDatabaseIsNotReplacedByANewOne) {
  SqliteHarness harness;
  ASSERT_TRUE(harness.Open().ok());
  harness.Close();
  std::filesystem::resize_file(harness.path(), 0);
  for (int i = 0; i < 2; ++i) {
    const absl::Status refused = harness.Open();
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_EQ(ReasonOf(refused), "STORE_MISSING");
    EXPECT_NE(refused.message().find(harness.path()), std::string::npos);
    std::filesystem::remove(harness.path());
  }
  EXPECT_FALSE(std::filesystem::exists(harness.path()));
}

TEST(StoreCreationTest, StoreWithoutAMarkIsMarkedAtItsNextStart) {
  SqliteHarness harness;
  ASSERT_TRUE(harness.Open().ok());
  harness.Close();
  ASSERT_TRUE(std::filesystem::remove(harness.path() + ".created"));
  ASSERT_TRUE(harness.Open().ok());
  harness.Close();
  std::filesystem::remove(harness.path());
  EXPECT_EQ(ReasonOf(harness.Open()), "STORE_MISSING");
}

// The process was killed between the creation of the file and its first page.
TEST(StoreCreationTest, InterruptedCreationIsCompleted) {
  SqliteHarness harness;
  std::ofstream(harness.path()).flush();
  EXPECT_TRUE(harness.Open().ok());
}

TEST(StoreCreationTest, DataOfALostDatabaseRefusesANewOne) {
  SqliteHarness harness;
  bool data = true;
  harness.options().has_data = [&data] { return data; };
  EXPECT_EQ(ReasonOf(harness.Open()), "STORE_MISSING");
  EXPECT_FALSE(std::filesystem::exists(harness.path()));
  data = false;
  ASSERT_TRUE(harness.Open().ok());
  harness.Close();
  data = true;
  EXPECT_TRUE(harness.Open().ok());
}

}  // namespace
}  // namespace muster
