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
void Work(SpoolFixture& rig, Told& told) {
  if (!rig.Open().ok()) return;
  if (!rig.Deliver("n1", "facts", Small()).ok()) return;
  told.spooled.insert("n1/facts");
  if (!rig.Deliver("n1", "logs", Large()).ok()) return;
  told.spooled.insert("n1/logs");
  if (rig.Next() != "n1/facts") return;
  // From here on it may be gone.
  told.gone.insert("n1/facts");
  rig.spool().Finish(*rig.taken, "committed");
}

void CheckAndGoOn(SpoolFixture& rig, const Told& told) {
  ASSERT_TRUE(rig.Open().ok());
  std::set<std::string> found;
  for (std::string next = rig.Next(); !next.empty(); next = rig.Next()) {
    EXPECT_FALSE(rig.taken->expired) << rig.taken->why;
    EXPECT_TRUE(rig.Bytes() == (next == "n1/facts" ? Small() : Large())) << next;
    EXPECT_TRUE(found.insert(next).second);
    rig.spool().Finish(*rig.taken, "committed");
  }
  for (const std::string& name : told.spooled) {
    EXPECT_TRUE(found.contains(name) || told.gone.contains(name)) << name;
  }
  // Everything can be delivered anew, and comes out.
  ASSERT_TRUE(rig.Deliver("n1", "facts", Small(), 2).ok());
  ASSERT_TRUE(rig.Deliver("n1", "logs", Large(), 1).ok());
  ASSERT_EQ(rig.Next(), "n1/facts");
  rig.spool().Finish(*rig.taken, "committed");
  ASSERT_EQ(rig.Next(), "n1/logs");
  EXPECT_TRUE(rig.Bytes() == Large());
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
      SpoolFixture rig;
      rig.disk.PowerOffAt(n);
      Told told;
      Work(rig, told);
      rig.Close();
      rig.disk.Crash(seed);
      CheckAndGoOn(rig, told);
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace muster
