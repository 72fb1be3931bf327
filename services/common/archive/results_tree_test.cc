#include "services/common/archive/results_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Reads `text` in pieces of `piece` bytes.
ResultItem Read(ResultFormat format, std::string_view text, size_t piece = 3,
                int64_t budget_bytes = ItemBudget::kDefaultBytes) {
  ItemBudget budget(budget_bytes);
  auto reader = MakeResultReader(format, "results/n1/file", budget);
  for (size_t at = 0; at < text.size(); at += piece) reader->Write(text.substr(at, piece));
  ResultItem item = reader->Finish();
  RollUp(item);
  return item;
}

std::string ErrorOf(const ResultItem& item) {
  EXPECT_EQ(item.status, kUnknown);
  EXPECT_THAT(item.items, IsEmpty());
  EXPECT_EQ(item.meta.at("file"), "results/n1/file");
  const auto error = item.meta.find(kMetaError);
  return error == item.meta.end() ? "no error" : error->second;
}

auto Is(std::string_view name, std::string_view status) {
  return AllOf(Field(&ResultItem::name, name), Field(&ResultItem::status, status));
}

constexpr std::string_view kSuites = R"(<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
 <testsuite name="first">
  <properties><property name="p" value="v"/></properties>
  <testcase name="good" time="1"/>
  <testcase name="bad"><failure message="was" type="t">1 &lt; 0</failure><system-out>o1</system-out>
   <system-err><![CDATA[e <1>]]></system-err></testcase>
  <testcase name="broken"><error message="crash"/></testcase>
  <testcase name="left out"><skipped/><failure>x</failure></testcase>
 </testsuite>
 <testsuite><testcase name="größe"/></testsuite>
</testsuites>)";

TEST(JunitReaderTest, SuitesAndCasesAreParsed) {
  const ResultItem item = Read(ResultFormat::kJunit, kSuites);
  EXPECT_EQ(item.status, kFailed);
  EXPECT_EQ(item.name, "file");
  EXPECT_EQ(item.meta.at("type"), "file");
  ASSERT_THAT(item.items, ElementsAre(Is("first", kFailed), Is("testsuite-002", kPassed)));
  const auto& cases = item.items[0].items;
  EXPECT_THAT(cases, ElementsAre(Is("good", kPassed), Is("bad", kFailed), Is("broken", kFailed),
                                 Is("left out", kSkipped)));
  EXPECT_EQ(cases[1].details["failure"], "was 1 < 0");
  EXPECT_EQ(cases[1].details["system-out"], "o1");
  EXPECT_EQ(cases[1].details["system-err"], "e <1>");
  EXPECT_EQ(cases[2].details["error"], "crash");
  EXPECT_TRUE(cases[0].details.is_null());
  EXPECT_THAT(item.items[1].items, ElementsAre(Is("größe", kPassed)));
}

TEST(JunitReaderTest, SingleAndNestedSuitesAreParsed) {
  const ResultItem one =
      Read(ResultFormat::kJunit, "<testsuite name='s'><testcase name='c'/></testsuite>");
  EXPECT_THAT(one.items, ElementsAre(Is("s", kPassed)));
  const ResultItem nested =
      Read(ResultFormat::kJunit,
           "<testsuite name='o'><testsuite name='i'><testcase name='c'/></testsuite></testsuite>");
  EXPECT_THAT(nested.items, ElementsAre(Is("i", kPassed), Is("o", kPassed)));
}

TEST(JunitReaderTest, InvalidFileIsUnknownWithTheReason) {
  EXPECT_THAT(ErrorOf(Read(ResultFormat::kJunit, kSuites.substr(0, 400))),
              AllOf(HasSubstr("after 3 cases"), HasSubstr("ends in the middle")));
  EXPECT_THAT(ErrorOf(Read(ResultFormat::kJunit, "")), HasSubstr("ends in the middle"));
  EXPECT_THAT(ErrorOf(Read(ResultFormat::kJunit, "<a><b></a>")), HasSubstr("begins with <a>"));
  EXPECT_THAT(ErrorOf(Read(ResultFormat::kJunit, "<testsuite><x></testsuite>")),
              HasSubstr("line 1"));
  EXPECT_THAT(ErrorOf(Read(ResultFormat::kJunit, "no xml")), HasSubstr("line 1"));
  EXPECT_THAT(ErrorOf(Read(ResultFormat::kJunit, "<testsuites/>")), HasSubstr("without a test"));
  std::string deep = "<testsuites>";
  for (int i = 0; i < 200; ++i) deep += "<testsuite>";
  EXPECT_THAT(ErrorOf(Read(ResultFormat::kJunit, deep)), HasSubstr("nested too deeply"));
}

TEST(JunitReaderTest, EntityExpansionIsLimited) {
  std::string bomb = "<!DOCTYPE x [<!ENTITY a 'aaaaaaaaaa'>";
  for (char c = 'b'; c < 'l'; ++c) {
    const std::string before = absl::StrCat("&", std::string(1, c - 1), ";");
    bomb += absl::StrCat("<!ENTITY ", std::string(1, c), " '");
    for (int i = 0; i < 10; ++i) bomb += before;
    bomb += "'>";
  }
  bomb += "]><testsuite><testcase><failure>&k;</failure></testcase></testsuite>";
  EXPECT_THAT(ErrorOf(Read(ResultFormat::kJunit, bomb)), HasSubstr("amplification"));
  const std::string file =
      "<!DOCTYPE x [<!ENTITY f SYSTEM '/etc/passwd'>]>"
      "<testsuite><testcase name='c'><failure>[&f;]</failure></testcase></testsuite>";
  const ResultItem item = Read(ResultFormat::kJunit, file);
  ASSERT_THAT(item.items, SizeIs(1));
  EXPECT_EQ(item.items[0].items[0].details["failure"], "[]");
}

TEST(JunitReaderTest, TextsTagsAndCasesAreLimited) {
  const std::string text(100'000, 'x');
  const ResultItem item = Read(
      ResultFormat::kJunit,
      "<testsuite><testcase name='c'><failure>" + text + "</failure></testcase></testsuite>", 1000);
  EXPECT_THAT(item.items[0].items[0].details["failure"].get<std::string>(),
              HasSubstr("xxx [34464 more bytes: see the file]"));
  EXPECT_THAT(ErrorOf(Read(ResultFormat::kJunit,
                           "<testsuite name='" + std::string(size_t{9} << 20, 'x'), 1 << 16)),
              HasSubstr("longer than"));
  std::string many = "<testsuite name='s'>";
  for (int i = 0; i < 1000; ++i)
    many += i == 900 ? "<testcase name='b'><failure/></testcase>" : "<testcase name='a'/>";
  const ResultItem cut = Read(ResultFormat::kJunit, many + "</testsuite>", 1000, 20'000);
  EXPECT_EQ(cut.status, kFailed);
  EXPECT_EQ(Summarize(cut).total(), 1000);
  EXPECT_EQ(Summarize(cut).count(kFailed), 1);
  EXPECT_LT(cut.items[0].items.size(), 200u);
  EXPECT_GT(cut.items[0].items.size(), 50u) << "the suite is kept with the cases that fit";
}

TEST(GoJsonReaderTest, EndsOfTestsAreLeaves) {
  const ResultItem item = Read(ResultFormat::kGoJson,
                               R"({"Action":"run","Test":"A"}
{"Action":"output","Test":"A","Output":"{\"Action\":\"fail\"} \\ }\n"}
{"Action":"pass","Test":"A","Elapsed":0.1}{"action":"fail","test":"B/sub"}
  {"Action":"skip","Test":"C"}
{"Action":"melted","Test":"D"}
{"Action":"fail","Package":"p"})");
  EXPECT_THAT(item.items, ElementsAre(Is("A", kPassed), Is("B/sub", kFailed), Is("C", kSkipped),
                                      Is("D", kUnknown)));
  EXPECT_EQ(item.status, kFailed);
}

TEST(GoJsonReaderTest, InvalidFileIsUnknownWithTheReason) {
  const std::string good = R"({"Action":"pass","Test":"A"})";
  EXPECT_THAT(ErrorOf(Read(ResultFormat::kGoJson, good + "{\"Action\"")),
              HasSubstr("in the middle of event 2"));
  EXPECT_THAT(ErrorOf(Read(ResultFormat::kGoJson, good + "[1]")), HasSubstr("event 2 is no JSON"));
  EXPECT_THAT(ErrorOf(Read(ResultFormat::kGoJson, "{bad}")), HasSubstr("event 1 is no test event"));
  EXPECT_THAT(ErrorOf(Read(ResultFormat::kGoJson, R"({"Action":5,"Test":"A"})")),
              HasSubstr("no test event"));
  EXPECT_THAT(ErrorOf(Read(ResultFormat::kGoJson, "")), HasSubstr("no test"));
  EXPECT_THAT(ErrorOf(Read(ResultFormat::kGoJson,
                           "{\"Output\":\"" + std::string(size_t{17} << 20, 'x'), 1 << 20)),
              HasSubstr("longer than"));
}

TEST(ManualReaderTest, ItemsAreCopied) {
  const ResultItem item = Read(ResultFormat::kManual, R"(
name: mine
status: green
details: {k: [1, {a: b}]}
items:
- name: i
  status: red
  items: [{name: j, status: green}]
)");
  EXPECT_EQ(item.name, "file");
  EXPECT_EQ(item.status, "green: 1");
  EXPECT_EQ(item.details["k"][1]["a"], "b");
  ASSERT_THAT(item.items, ElementsAre(Is("i", "green: 1")));
  EXPECT_EQ(item.meta.at("file"), "results/n1/file");
}

TEST(ManualReaderTest, InvalidFileIsUnknownWithTheReason) {
  EXPECT_THAT(ErrorOf(Read(ResultFormat::kManual, "a: [b")), HasSubstr("manual results"));
  EXPECT_THAT(ErrorOf(Read(ResultFormat::kManual, std::string(size_t{17} << 20, ' '), 1 << 20)),
              HasSubstr("longer than"));
}

TEST(IsResultFileTest, NameOrExtensionMatches) {
  const std::vector<std::string> none;
  const std::vector<std::string> named = {"report.txt"};
  EXPECT_TRUE(IsResultFile(ResultFormat::kJunit, none, "results/n/a.xml"));
  EXPECT_FALSE(IsResultFile(ResultFormat::kJunit, none, "results/n/a.json"));
  EXPECT_TRUE(IsResultFile(ResultFormat::kGoJson, none, "a.json"));
  EXPECT_TRUE(IsResultFile(ResultFormat::kManual, none, "a.yml"));
  EXPECT_TRUE(IsResultFile(ResultFormat::kRaw, none, "a"));
  EXPECT_TRUE(IsResultFile(ResultFormat::kJunit, named, "x/report.txt"));
  EXPECT_FALSE(IsResultFile(ResultFormat::kJunit, named, "x/a.xml"));
  EXPECT_FALSE(IsResultFile(ResultFormat::kRaw, named, "x/a.xml"));
}

TEST(ResultFormatTest, UnknownFormatIsRaw) {
  EXPECT_EQ(ResultFormatFrom("e2e"), ResultFormat::kJunit);
  EXPECT_EQ(ResultFormatFrom("junit"), ResultFormat::kJunit);
  EXPECT_EQ(ResultFormatFrom("gojson"), ResultFormat::kGoJson);
  EXPECT_EQ(ResultFormatFrom("manual"), ResultFormat::kManual);
  EXPECT_EQ(ResultFormatFrom("JUNIT"), ResultFormat::kRaw);
  EXPECT_EQ(ResultFormatFrom(""), ResultFormat::kRaw);
}

void AddRaw(ResultsTree& tree, const std::string& path) { tree.AddFile(tree.ReaderFor(path)); }

TEST(ResultsTreeTest, NodesOfADaemonSetAreBranches) {
  ResultsTree tree({.plugin = "p", .per_node = true});
  tree.BeginNode("n1");
  AddRaw(tree, "results/n1/b/z");
  AddRaw(tree, "results/n1/b-1");
  AddRaw(tree, "results/n1/a");
  tree.EndNode();
  tree.BeginNode("n2");
  tree.AddError("errors/n2/error.json", {{"error", "timeout waiting"}, {"pod", {{"a", 1}}}});
  tree.EndNode();
  tree.BeginNode("n3");
  tree.EndNode();
  const ResultItem root = tree.Finish();
  EXPECT_EQ(root.name, "p");
  EXPECT_EQ(root.meta.at("type"), "summary");
  EXPECT_EQ(root.status, kFailed);
  // Nodes with results precede nodes with errors.
  ASSERT_THAT(root.items, ElementsAre(Is("n1", kPassed), Is("n3", kUnknown), Is("n2", kFailed)));
  EXPECT_EQ(root.items[0].meta.at("type"), "node");
  EXPECT_THAT(root.items[0].items,
              ElementsAre(Is("a", kPassed), Is("z", kPassed), Is("b-1", kPassed)));
  ASSERT_THAT(root.items[2].items, ElementsAre(Is("timeout waiting", kTimeout)));
  EXPECT_EQ(root.items[2].items[0].details["pod"], "{\"a\":1}");
}

TEST(ResultsTreeTest, FilesOfAJobAreChildrenOfTheRoot) {
  ResultsTree tree({.plugin = "p", .format = ResultFormat::kJunit});
  tree.BeginNode("global");
  EXPECT_EQ(tree.ReaderFor("results/global/a.log"), nullptr);
  auto reader = tree.ReaderFor("results/global/junit.xml");
  reader->Write("<testsuite name='s'><testcase name='c'/></testsuite>");
  tree.AddFile(std::move(reader));
  tree.AddDamagedFile("results/global/bad.xml", "lost");
  tree.EndNode();
  const ResultItem root = tree.Finish();
  EXPECT_THAT(root.items, ElementsAre(Is("bad.xml", kUnknown), Is("junit.xml", kPassed)));
  EXPECT_EQ(root.items[0].meta.at("error"), "lost");
  EXPECT_EQ(root.status, kUnknown);
}

TEST(ResultsTreeTest, TooLargeTreeIsCutWithCounts) {
  ResultsTree tree({.plugin = "p", .per_node = true, .max_bytes = 50'000});
  for (int i = 0; i < 1000; ++i) {
    const std::string node = absl::StrCat("n", i);
    tree.BeginNode(node);
    AddRaw(tree, absl::StrCat("results/", node, "/f"));
    tree.EndNode();
  }
  tree.BeginNode("last");
  tree.AddError("errors/last/error.json", {{"error", "no disk"}});
  tree.EndNode();
  const ResultItem root = tree.Finish();
  EXPECT_EQ(root.status, kFailed);
  EXPECT_LT(root.items.size(), 200u);
  EXPECT_EQ(Summarize(root).count(kPassed), 1000);
  EXPECT_EQ(Summarize(root).count(kFailed), 1);
}

TEST(ResultsTreeTest, NodeWithTooManyLeavesLeavesRoomForOthers) {
  ResultsTree tree(
      {.plugin = "p", .per_node = true, .format = ResultFormat::kJunit, .max_bytes = 1'000'000});
  const auto add = [&tree](const std::string& node, int cases) {
    tree.BeginNode(node);
    auto reader = tree.ReaderFor(absl::StrCat("results/", node, "/a.xml"));
    std::string xml = "<testsuite name='s'>";
    for (int i = 0; i < cases; ++i) absl::StrAppend(&xml, "<testcase name='", i, "'/>");
    reader->Write(xml + "</testsuite>");
    tree.AddFile(std::move(reader));
    tree.EndNode();
  };
  for (int i = 0; i < 8; ++i) add(absl::StrCat("large", i), 10'000);
  add("small", 2);
  const ResultItem root = tree.Finish();
  ASSERT_EQ(root.items.size(), 9u);
  EXPECT_EQ(Summarize(root.items[0]).count(kPassed), 10'000);
  EXPECT_NE(FindItem(root.items[0], "1"), nullptr) << "a leaf of the first node";
  const ResultItem* const small = FindItem(root, "small");
  ASSERT_NE(small, nullptr);
  EXPECT_NE(FindItem(*small, "1"), nullptr);
  EXPECT_EQ(Summarize(*small).total(), 2);
}

TEST(ResultsTreeTest, TreeWithoutResultsIsUnknown) {
  ResultsTree tree({.plugin = "p"});
  const ResultItem root = tree.Finish();
  EXPECT_EQ(root.status, kUnknown);
  EXPECT_THAT(root.items, IsEmpty());
}

TEST(GoJsonReaderTest, DeeplyNestedEventIsRefused) {
  const std::string deep(100, '[');
  EXPECT_THAT(
      ErrorOf(Read(ResultFormat::kGoJson, absl::StrCat(R"({"Action":"pass","Test":"A","x":)", deep,
                                                       std::string(100, ']'), "}"))),
      HasSubstr("event 1 is no test event"));
}

TEST(GoJsonReaderTest, NestedValuesAreNotFields) {
  const ResultItem item = Read(
      ResultFormat::kGoJson, R"({"Test":"A","x":[{"Action":"fail"},{"Test":5}],"ACTION":"pass"})");
  EXPECT_THAT(item.items, ElementsAre(Is("A", kPassed)));
}

TEST(ManualReaderTest, ManyKeysAreReadInLinearTime) {
  std::string text = "name: m\nstatus: passed\ndetails:\n";
  for (int i = 0; i < 200'000; ++i) absl::StrAppend(&text, "  k", i, ": 1\n");
  EXPECT_EQ(Read(ResultFormat::kManual, text, 1 << 20).status, kPassed);
}

TEST(ManualReaderTest, FileOfTooManyValuesIsRefused) {
  std::string text = "name: m\nstatus: passed\ndetails: {a: [";
  for (int i = 0; i < 500'000; ++i) text += "1,";
  EXPECT_THAT(ErrorOf(Read(ResultFormat::kManual, text + "]}", 1 << 20)),
              HasSubstr("too many values"));
}

TEST(ManualReaderTest, ManyStatusesShareOneCount) {
  std::string text = "name: m\nitems:\n";
  for (int i = 0; i < 1'000; ++i) absl::StrAppend(&text, "- {name: a, status: own", i, "}\n");
  const ResultItem item = Read(ResultFormat::kManual, text, 1 << 20);
  const StatusCounts counts = CountLeaves(item);
  EXPECT_THAT(counts, SizeIs(101));
  EXPECT_EQ(counts.at("other"), 900);
  EXPECT_LT(item.status.size(), 2'000u);
}

TEST(ManualReaderTest, LongStatusIsCutAndItsNumbersAreBounded) {
  const ResultItem item =
      Read(ResultFormat::kManual,
           absl::StrCat(
               "name: m\nitems:\n- {name: a, status: '", std::string(10'000, 'x'),
               "'}\n- {name: b, status: 'red: 9223372036854775807, red: 9223372036854775807'}\n"),
           1 << 20);
  EXPECT_EQ(item.items[0].status.size(), 256u);
  EXPECT_EQ(CountLeaves(item).at("red"), 2'000'000'000);
}

// Adds a file of manual results that takes longer than kShort to read.
void AddSlow(ResultsTree& tree, const std::string& path) {
  std::string text = "name: m\nstatus: passed\ndetails:\n";
  for (int i = 0; i < 200'000; ++i) absl::StrAppend(&text, "  k", i, ": 1\n");
  auto reader = tree.ReaderFor(path);
  reader->Write(text);
  tree.AddFile(std::move(reader));
}

void AddShort(ResultsTree& tree, const std::string& path) {
  auto reader = tree.ReaderFor(path);
  reader->Write("status: passed");
  tree.AddFile(std::move(reader));
}

constexpr absl::Duration kShort = absl::Milliseconds(20);

TEST(ResultsTreeTest, FilesAfterTheTimeOfTheirNodeAreUnknown) {
  ResultsTree tree({.plugin = "p",
                    .per_node = true,
                    .format = ResultFormat::kManual,
                    .max_cpu_of_node = kShort});
  tree.BeginNode("n1");
  AddSlow(tree, "results/n1/a.yaml");
  AddShort(tree, "results/n1/b.yaml");
  tree.EndNode();
  tree.BeginNode("n2");
  AddShort(tree, "results/n2/b.yaml");
  tree.EndNode();
  const ResultItem root = tree.Finish();
  ASSERT_THAT(root.items, ElementsAre(Is("n1", kUnknown), Is("n2", kPassed)));
  ASSERT_THAT(root.items[0].items, ElementsAre(Is("a.yaml", kUnknown), Is("b.yaml", kUnknown)));
  EXPECT_THAT(root.items[0].items[0].meta.at(kMetaError), HasSubstr("takes too long to read"));
  EXPECT_THAT(root.items[0].items[1].meta.at(kMetaError), HasSubstr("other files took too long"));
}

TEST(ResultsTreeTest, FilesAfterTheTimeOfTheTreeAreUnknown) {
  ResultsTree tree(
      {.plugin = "p", .per_node = true, .format = ResultFormat::kManual, .max_cpu = kShort});
  for (const std::string node : {"n1", "n2"}) {
    tree.BeginNode(node);
    AddSlow(tree, absl::StrCat("results/", node, "/a.yaml"));
    tree.EndNode();
  }
  const ResultItem root = tree.Finish();
  ASSERT_THAT(root.items, ElementsAre(Is("n1", kUnknown), Is("n2", kUnknown)));
  EXPECT_THAT(root.items[1].items[0].meta.at(kMetaError), HasSubstr("other files took too long"));
}

}  // namespace
}  // namespace muster
