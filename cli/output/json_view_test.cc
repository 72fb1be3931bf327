#include "cli/output/json_view.h"

#include <gtest/gtest.h>

#include <string>

namespace muster::cli {
namespace {

TEST(EnrolledNodeJsonTest, NodeWithoutConfiguredParentsShowsRoot) {
  v1::EnrolledNode node;
  EXPECT_EQ(ToJson(node)["parents"], Json::array({"root"}));
  node.add_parents("r1");
  EXPECT_EQ(ToJson(node)["parents"], Json::array({"r1"}));
}

TEST(DumpTest, ControlAndBidirectionalCharactersAreEscaped) {
  const std::string name =
      "a\x1b[2J\x7f\xc2\x9b"  // DEL, and CSI as one character
      "2J\xe2\x80\xaegpj.exe\xe2\x81\xa6\xd8\x9c\xe2\x80\xa8";
  const std::string line = Dump({{"name", name}});
  EXPECT_EQ(line,
            "{\"name\":\"a\\u001b[2J\\u007f\\u009b2J\\u202egpj.exe\\u2066\\u061c\\u2028\"}\n");
  EXPECT_EQ(Json::parse(line)["name"], name);
}

TEST(DumpTest, OtherCharactersAreUnchanged) {
  EXPECT_EQ(Dump({{"n\xc3\xa4me", "\xe2\x82\xac \xf0\x9f\x98\x80"}}),
            "{\"n\xc3\xa4me\":\"\xe2\x82\xac \xf0\x9f\x98\x80\"}\n");
  EXPECT_EQ(Dump({{"name", "caf\xe9"}}), "{\"name\":\"caf\xef\xbf\xbd\"}\n");
}

}  // namespace
}  // namespace muster::cli
