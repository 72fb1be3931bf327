#include "cli/output/live_view.h"

#include <gtest/gtest.h>

#include <sstream>

namespace muster::cli {
namespace {

TEST(LiveViewTest, SecondShowOverwritesTheLinesAndEndShowsTheCursor) {
  std::ostringstream out;
  {
    LiveView view(out);
    view.Show("one\ntwo\n", {});
    view.Show("three\n", {});
  }
  EXPECT_EQ(out.str(),
            "\x1b[?25lone\x1b[K\ntwo\x1b[K\n\x1b[J"
            "\x1b[2A\rthree\x1b[K\n\x1b[J"
            "\r\x1b[K\x1b[?25h");
}

TEST(LiveViewTest, LargeTextIsCutToTheScreen) {
  std::ostringstream out;
  {
    LiveView view(out);
    view.Show("1 is a line too long\n2\n3\n4\n5\n", {.width = 18, .height = 4});
  }
  EXPECT_EQ(out.str(),
            "\x1b[?25l1 is a line too...\x1b[K\n2\x1b[K\n... and 3 more "
            "...\x1b[K\n\x1b[J\r\x1b[K\x1b[?25h");
}

TEST(LiveViewTest, LastTextIsNotCutToTheHeight) {
  std::ostringstream out;
  {
    LiveView view(out);
    view.ShowLast("1 is a line too long\n2\n3\n4\n", {.width = 18, .height = 3});
  }
  EXPECT_EQ(out.str(),
            "\x1b[?25l1 is a line too...\x1b[K\n2\x1b[K\n3\x1b[K\n4\x1b[K\n\x1b[J"
            "\r\x1b[K\x1b[?25h");
}

TEST(LiveViewTest, ViewWithoutShowWritesNothing) {
  std::ostringstream out;
  {
    LiveView view(out);
  }
  EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace muster::cli
