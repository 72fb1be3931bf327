#include "services/common/archive/results_yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/common/archive/test_support.h"
#include "services/common/archive/yaml_tree.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

std::string Yaml(const ResultItem& item) {
  StringSink sink;
  EXPECT_TRUE(WriteResultsYaml(item, sink).ok());
  EXPECT_EQ(*ResultsYamlSize(item), static_cast<int64_t>(sink.text.size()));
  return sink.text;
}

TEST(ResultsYamlTest, WrittenTreeIsParsedAgain) {
  ResultItem leaf{.name = "quotes \" and\nlines: [yes] ", .status = "passed"};
  leaf.meta["file"] = "results/n 1/größe.xml";
  leaf.details = {{"failure", "a\tb\\n"}, {"n", 5}, {"deep", {{"list", {1, "2", nullptr}}}}};
  ResultItem odd{.name = "null", .status = "true"};
  ResultItem number{.name = "12", .status = "1e3"};
  ResultItem root{.name = "p", .status = "failed", .items = {leaf, odd, number}};
  const auto back = ParseResultsYaml(Yaml(root));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, root);
}

TEST(ResultsYamlTest, KeysHaveSonobuoysOrder) {
  ResultItem root{.name = "p", .status = "passed", .items = {{.name = "i", .status = "passed"}}};
  root.meta["type"] = "summary";
  EXPECT_EQ(Yaml(root), R"(name: "p"
status: passed
meta:
  "type": "summary"
items:
  - name: "i"
    status: passed
)");
}

TEST(ResultsYamlTest, AnyTextIsWrittenAsValidYaml) {
  ResultItem root{.name = std::string("bad \xff\xc3 bytes\x00\x01", 14), .status = "passed"};
  root.details = {{"k\xff", "v\xff"}};
  const auto back = ParseResultsYaml(Yaml(root));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_THAT(back->name, HasSubstr("bad \xEF\xBF\xBD"));
}

TEST(ResultsYamlTest, TreesOfSonobuoyAreParsed) {
  const auto item = ParseResultsYaml(R"(
status: custom
name: 7
items:
- name: first
  status: passed
  extra: {ignored: [1, 2]}
- {name: second, status: failed, details: {why: because}}
)");
  ASSERT_TRUE(item.ok()) << item.status();
  EXPECT_EQ(item->name, "7");
  EXPECT_EQ(item->status, "custom");
  ASSERT_EQ(item->items.size(), 2u);
  EXPECT_EQ(item->items[1].details["why"], "because");
}

TEST(ResultsYamlTest, InvalidTreesAreRefused) {
  const auto message = [](std::string_view text) {
    const auto item = ParseResultsYaml(text);
    EXPECT_TRUE(absl::IsInvalidArgument(item.status())) << text;
    return std::string(item.status().message());
  };
  EXPECT_THAT(message("- a"), HasSubstr("not a map"));
  EXPECT_THAT(message(""), HasSubstr("not a map"));
  EXPECT_THAT(message("name: a\nitems: 5"), HasSubstr("\"items\" of a is not a list"));
  EXPECT_THAT(message("name: a\nitems: [b]"), HasSubstr("not a map"));
  EXPECT_THAT(message("name: a\n\tb: c"), HasSubstr("line 2"));
  EXPECT_THAT(message("a: &x [1]\nb: *x"), HasSubstr("line 2: aliases"));
  EXPECT_THAT(message("? [a]\n: b"), HasSubstr("key"));
  EXPECT_THAT(message(std::string(100'000, '[')), HasSubstr("line 1"));
  EXPECT_THAT(message(std::string(100'000, '{')), HasSubstr("line 1"));
  std::string nested = "name: a";
  std::string indent;
  for (int i = 0; i < 31; ++i) {
    nested += "\n" + indent + "items:\n" + indent + "- name: b";
    indent += "  ";
  }
  EXPECT_THAT(message(nested), HasSubstr("nested too deeply"));
}

TEST(YamlTreeTest, ValuesAreLimited) {
  EXPECT_TRUE(ParseYamlTree("[1, 2, 3]", {.nodes = 4}).ok());
  EXPECT_FALSE(ParseYamlTree("[1, 2, 3, 4]", {.nodes = 4}).ok());
}

TEST(YamlTreeTest, OnlyPlainScalarsAreTyped) {
  const auto tree =
      ParseYamlTree("[1, -2.5, '1', yes, true, ~, null, .inf, 0x10, 1.2.3, '', \"a\\tb\"]");
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_EQ(tree->dump(), R"([1,-2.5,"1","yes",true,null,null,".inf","0x10","1.2.3","","a\tb"])");
}

TEST(YamlTreeTest, ParserStopsAfterItsTime) {
  const std::string text(10'000, 'x');
  EXPECT_TRUE(ParseYamlTree(text).ok());
  EXPECT_NE(ParseYamlTree(text, {.cpu = absl::ZeroDuration()}).status().message().find("too long"),
            absl::string_view::npos);
}

TEST(YamlTreeTest, LastValueOfARepeatedKeyWins) {
  const auto tree = ParseYamlTree("{a: 1, b: 2, a: 3}");
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_EQ(tree->dump(), R"({"a":3,"b":2})");
}

}  // namespace
}  // namespace muster
