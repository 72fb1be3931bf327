#include "cli/output/progress_bar.h"

#include <gtest/gtest.h>

#include <sstream>

#include "services/common/base/fake_clock.h"

namespace muster::cli {
namespace {

TEST(BarTest, IncompletePartIsNotFull) {
  EXPECT_EQ(Bar(0, 10, 10), "[----------]");
  EXPECT_EQ(Bar(999, 1000, 10), "[#########-]");
  EXPECT_EQ(Bar(1000, 1000, 10), "[##########]");
  EXPECT_EQ(Bar(0, 0, 4), "[----]");
}

TEST(ProgressLineTest, UnknownRateIsOmitted) {
  EXPECT_EQ(ProgressLine("a.tar.gz", 512, 2048, 0, 0),
            "a.tar.gz [######------------------]  25%  512 B of 2 KiB");
  EXPECT_EQ(ProgressLine("a.tar.gz", 1024, 2048, 512, 0),
            "a.tar.gz [############------------]  50%  1 KiB of 2 KiB  512 B/s  2s left");
  EXPECT_EQ(ProgressLine("a.tar.gz", 1024, 2048, 512, 20), "a.tar.gz [######...");
}

TEST(ProgressBarTest, FrequentUpdatesDrawOnceAndOnlyOnATerminal) {
  for (const bool terminal : {true, false}) {
    std::ostringstream out;
    std::ostringstream err;
    Console console{.out = out, .err = err, .err_is_terminal = terminal};
    FakeClock clock;
    {
      ProgressBar bar(console, "x", 0, 100, clock);
      for (int i = 1; i <= 100; ++i) bar.Update(i);
    }
    EXPECT_EQ(out.str(), "");
    EXPECT_EQ(err.str(), terminal ? "\rx [------------------------]   1%  1 B of 100 B\x1b[K"
                                    "\rx [########################] 100%  100 B of 100 B\x1b[K\n"
                                  : "");
  }
}

}  // namespace
}  // namespace muster::cli
