#include "cli/commands/without_answer.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace muster::cli {
namespace {

TEST(WithoutAnswerTest, AttachedNodesAndOthersAreNamedApart) {
  AttachedMap attached;
  attached["n1"].set_attached(true);
  attached["n2"].set_attached(false);
  EXPECT_EQ(WithoutAnswerText({"n1", "n2", "n3"}, attached),
            "attached, nothing reported yet: n1\nunreachable: n2, n3\n");
  EXPECT_EQ(WithoutAnswerText({}, attached), "");
}

TEST(WithoutAnswerTest, UnknownAttachmentIsOneLineWithItsCause) {
  EXPECT_EQ(WithoutAnswerText({"n1", "n2"}, absl::UnavailableError("the relay does not answer")),
            "attachment unknown (the relay does not answer): n1, n2\n");
}

TEST(WithoutAnswerTest, TenNodesAreNamed) {
  std::vector<std::string> nodes;
  for (int i = 0; i < 13; ++i) nodes.push_back(absl::StrCat("n", i));
  EXPECT_EQ(WithoutAnswerText(nodes, AttachedMap()),
            "unreachable: n0, n1, n2, n3, n4, n5, n6, n7, n8, n9 and 3 more\n");
}

}  // namespace
}  // namespace muster::cli
