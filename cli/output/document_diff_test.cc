#include "cli/output/document_diff.h"

#include <gtest/gtest.h>

#include "services/common/base/error.h"

namespace muster::cli {
namespace {

std::string Diff(const std::string& before, const std::string& after) {
  const auto changes = CompareDocuments(before, after);
  return changes.ok() ? DiffText(*changes) : ReasonOf(changes.status());
}

TEST(DocumentDiffTest, EqualDocumentsHaveNoDifference) {
  EXPECT_EQ(Diff(R"({"a": 1, "b": [1, 2]})", R"({"b":[1,2],"a":1})"), "");
}

TEST(DocumentDiffTest, EachDifferenceHasItsPlace) {
  EXPECT_EQ(Diff(R"({"limits": {"time": "1m"}, "old": true, "version": "1.0.0"})",
                 R"({"limits": {"time": "2m"}, "new": {"a": 1}, "version": "1.0.0"})"),
            "- /limits/time: \"1m\"\n"
            "+ /limits/time: \"2m\"\n"
            "- /old: true\n"
            "+ /new: {\"a\":1}\n");
}

TEST(DocumentDiffTest, ElementsOfListsAreCompared) {
  EXPECT_EQ(Diff(R"({"a": [1, 2, 3, 4]})", R"({"a": [1, 5]})"),
            "- /a/1: 2\n+ /a/1: 5\n- /a/3: 4\n- /a/2: 3\n");
  EXPECT_EQ(Diff(R"({"a": [1]})", R"({"a": [1, 2]})"), "+ /a/-: 2\n");
}

TEST(DocumentDiffTest, NumbersKeepTheirText) {
  EXPECT_EQ(Diff(R"({"a": 9007199254740993})", R"({"a": 0.10})"),
            "- /a: 9007199254740993\n+ /a: 0.10\n");
  EXPECT_EQ(Diff(R"({"a": 0.1})", R"({"a": 0.10})"), "- /a: 0.1\n+ /a: 0.10\n");
}

TEST(DocumentDiffTest, ControlCharactersAreNotPrinted) {
  EXPECT_EQ(Diff(R"({})", R"({"\u001b[31m": "\u009b"})").find('\x1b'), std::string::npos);
}

TEST(DocumentDiffTest, FilesAreComparedByPath) {
  const auto add = [](TemplateFileList& files, const std::string& path, const char* sha256,
                      bool executable = false) {
    v1::DeploymentFile& file = *files.Add();
    file.set_path(path);
    file.set_sha256(sha256);
    file.set_size(3);
    file.set_executable(executable);
  };
  TemplateFileList before;
  TemplateFileList after;
  add(before, "same", "a");
  add(before, "gone", "b");
  add(before, "a/b~c", "c");
  add(after, "a/b~c", "c", true);
  add(after, "new", "d");
  add(after, "same", "a");
  EXPECT_EQ(DiffText(CompareFiles(before, after)),
            "- /files/a~1b~0c: {\"size\":3,\"sha256\":\"63\",\"executable\":false}\n"
            "+ /files/a~1b~0c: {\"size\":3,\"sha256\":\"63\",\"executable\":true}\n"
            "- /files/gone: {\"size\":3,\"sha256\":\"62\",\"executable\":false}\n"
            "+ /files/new: {\"size\":3,\"sha256\":\"64\",\"executable\":false}\n");
}

TEST(DocumentDiffTest, TextThatIsNotJsonIsRefused) {
  EXPECT_EQ(Diff("{", "{}"), "INVALID_DOCUMENT");
}

}  // namespace
}  // namespace muster::cli
