#include "services/common/base/shell_quote.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/str_join.h"

namespace muster {
namespace {

TEST(ShellQuoteTest, OnlyWordsThatAShellWouldChangeAreQuoted) {
  const std::vector<std::string> words = {"/bin/sh", "-c", "echo 'a b' > x", "", "--user=a@b,c"};
  EXPECT_EQ(absl::StrJoin(words, " ", AppendShellWord),
            R"(/bin/sh -c 'echo '\''a b'\'' > x' '' --user=a@b,c)");
  EXPECT_EQ(ShellQuoted("plain"), "'plain'");
}

}  // namespace
}  // namespace muster
