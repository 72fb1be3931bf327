// Loss of power (and with it of the process) at every change of the disk: what the sender was told
// is in the spool comes out of it, bit for bit, until it was dealt with; and the spool can always
// go on.
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/relay/testing/spool_fixture.h"

namespace muster {
namespace {

using testing::SpoolFixture;

const std::string& Small() {
  static const std::string text = Pattern(900);
  return text;
}
const std::string& Large() {
  static const std::string text = Pattern(70'000);
  return text;
}

struct Told {
  std::set<std::string> spooled;  // what the node was told is here
  std::set<std::string> gone;     // what was dealt with
};

// Two results in, the first one out; stops at the first failure.
void Work(SpoolFixture& fixture, Told& told) {
  if (!fixture.Open().ok()) return;
  if (!fixture.Deliver("n1", "facts", Small()).ok()) return;
  told.spooled.insert("n1/facts");
  if (!fixture.Deliver("n1", "logs", Large()).ok()) return;
  told.spooled.insert("n1/logs");
  if (fixture.Next() != "n1/facts") return;
  // From here on it may be gone.
  told.gone.insert("n1/facts");
  fixture.spool().Finish(*fixture.taken, "committed");
}

void CheckAndGoOn(SpoolFixture& fixture, const Told& told) {
  ASSERT_TRUE(fixture.Open().ok());
  std::set<std::string> found;
  for (std::string next = fixture.Next(); !next.empty(); next = fixture.Next()) {
    EXPECT_FALSE(fixture.taken->expired) << fixture.taken->why;
    EXPECT_TRUE(fixture.Bytes() == (next == "n1/facts" ? Small() : Large())) << next;
    EXPECT_TRUE(found.insert(next).second);
    fixture.spool().Finish(*fixture.taken, "committed");
  }
  for (const std::string& name : told.spooled) {
    EXPECT_TRUE(found.contains(name) || told.gone.contains(name)) << name;
  }
  // Everything can be delivered anew, and comes out.
  ASSERT_TRUE(fixture.Deliver("n1", "facts", Small(), 2).ok());
  ASSERT_TRUE(fixture.Deliver("n1", "logs", Large(), 1).ok());
  ASSERT_EQ(fixture.Next(), "n1/facts");
  fixture.spool().Finish(*fixture.taken, "committed");
  ASSERT_EQ(fixture.Next(), "n1/logs");
  EXPECT_TRUE(fixture.Bytes() == Large());
}

TEST(SpoolCrashTest, NothingThatWasTakenIsLost) {
  SpoolFixture whole;
  Told all;
  Work(whole, all);
  ASSERT_EQ(all.gone.size(), 1u);
  const int64_t changes = whole.disk.changes();
  ASSERT_GT(changes, 30);
  for (int n = 1; n <= changes; ++n) {
    for (uint64_t seed = 0; seed < 4; ++seed) {
      SCOPED_TRACE(absl::StrCat("power off at change ", n, " of ", changes, ", seed ", seed));
      SpoolFixture fixture;
      fixture.disk.PowerOffAt(n);
      Told told;
      Work(fixture, told);
      fixture.Close();
      fixture.disk.Crash(seed);
      CheckAndGoOn(fixture, told);
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace muster
