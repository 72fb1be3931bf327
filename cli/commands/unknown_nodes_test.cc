#include "cli/commands/unknown_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace muster::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

v1::EnrolledNode Enrolled(const std::string& name, bool is_relay = false, bool revoked = false) {
  v1::EnrolledNode node;
  node.set_name(name);
  node.set_is_relay(is_relay);
  node.set_revoked(revoked);
  return node;
}

TEST(UnknownNodesTest, EachUnusableNodeHasAWarning) {
  EXPECT_THAT(
      UnknownNodeWarnings({"n1", "r1", "n2", "n9", "n9"},
                          {Enrolled("n1"), Enrolled("n2", false, true), Enrolled("r1", true)}),
      ElementsAre(HasSubstr("Warning: node n2 is revoked"),
                  HasSubstr("no enrolled node has the name n9"), HasSubstr("r1 is a relay")));
}

TEST(UnknownNodesTest, MistypedNameHasASuggestion) {
  EXPECT_THAT(
      UnknownNodeWarnings({"wbe-1"}, {Enrolled("web-1"), Enrolled("db-1")}),
      ElementsAre("Warning: no enrolled node has the name wbe-1; did you mean web-1? If that "
                  "is a mistake, cancel the run and correct it. Otherwise its results need "
                  "a run credential (muster credentials export)."));
}

TEST(UnknownNodesTest, FleetWithoutEnrolledNodesHasNoWarnings) {
  EXPECT_THAT(UnknownNodeWarnings({"n1"}, {}), IsEmpty());
}

TEST(UnknownNodesTest, TenWarningsAreListed) {
  std::vector<std::string> nodes;
  for (int i = 0; i < 12; ++i) nodes.push_back(absl::StrCat("x", i));
  const auto warnings = UnknownNodeWarnings(nodes, {Enrolled("n1")});
  ASSERT_EQ(warnings.size(), 11u);
  EXPECT_EQ(warnings.back(), "... and 2 more");
}

}  // namespace
}  // namespace muster::cli
