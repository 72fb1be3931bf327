#include "services/relay/jobs/abandoned_nodes.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(AbandonedNodesTest, NamesAreFoundAndHardlyAnyOther) {
  std::vector<std::string> names;
  for (int i = 0; i < 50'000; ++i) names.push_back(absl::StrCat("node-", i));
  const AbandonedNodes nodes(names);
  int found = 0;
  int others = 0;
  for (int i = 0; i < 50'000; ++i) {
    if (nodes.MayContain(names[i])) ++found;
    if (nodes.MayContain(absl::StrCat("other-", i))) ++others;
  }
  EXPECT_EQ(found, 50'000);
  EXPECT_LT(others, 100);
  EXPECT_FALSE(AbandonedNodes().MayContain("node-0"));
}

}  // namespace
}  // namespace muster
