#include "services/common/base/exit_process.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <iostream>

namespace muster {
namespace {

struct Loud {
  ~Loud() { std::fputs("destroyed\n", stderr); }
};

TEST(ExitProcessTest, WritesBufferedOutputAndDestroysNothing) {
  EXPECT_EXIT(
      {
        static const Loud loud;
        static char buffer[64];
        std::setvbuf(stderr, buffer, _IOFBF, sizeof(buffer));
        std::fputs("buffered\n", stderr);
        ExitProcess(3);
      },
      ::testing::ExitedWithCode(3), "^buffered\n$");
}

}  // namespace
}  // namespace muster
