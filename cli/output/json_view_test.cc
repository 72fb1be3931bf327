#include "cli/output/json_view.h"

#include <gtest/gtest.h>

namespace muster::cli {
namespace {

TEST(EnrolledNodeJsonTest, NodeWithoutConfiguredParentsShowsRoot) {
  v1::EnrolledNode node;
  EXPECT_EQ(ToJson(node)["parents"], Json::array({"root"}));
  node.add_parents("r1");
  EXPECT_EQ(ToJson(node)["parents"], Json::array({"r1"}));
}

}  // namespace
}  // namespace muster::cli
