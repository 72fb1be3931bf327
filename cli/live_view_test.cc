#include "cli/live_view.h"

#include <gtest/gtest.h>

#include <sstream>

namespace muster::cli {
namespace {

TEST(LiveView, DrawsOverTheLinesBeforeAndGivesTheCursorBack) {
  std::ostringstream out;
  std::ostringstream err;
  Console console{.out = out, .err = err, .out_is_terminal = true, .width = 20};
  {
    LiveView view(console);
    view.Show("one\ntwo\n", 0);
    view.Show("three\n", 0);
  }
  EXPECT_EQ(out.str(),
            "\x1b[?25lone\x1b[K\ntwo\x1b[K\n\x1b[J"
            "\x1b[2A\rthree\x1b[K\n\x1b[J"
            "\x1b[?25h");
}

TEST(LiveView, NeverTallerOrWiderThanTheScreen) {
  std::ostringstream out;
  std::ostringstream err;
  Console console{.out = out, .err = err, .out_is_terminal = true, .width = 18};
  {
    LiveView view(console);
    view.Show("1 is a line too long\n2\n3\n4\n5\n", 4);
  }
  EXPECT_EQ(
      out.str(),
      "\x1b[?25l1 is a line too...\x1b[K\n2\x1b[K\n... and 3 more ...\x1b[K\n\x1b[J\x1b[?25h");
}

TEST(LiveView, OneThatShowedNothingWritesNothing) {
  std::ostringstream out;
  std::ostringstream err;
  Console console{.out = out, .err = err};
  {
    LiveView view(console);
  }
  EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace muster::cli
