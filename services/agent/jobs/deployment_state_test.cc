#include "services/agent/jobs/deployment_state.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/jobs/job_record.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::json;

class DeploymentStateTest : public ::testing::Test {
 protected:
  DeploymentStateTest() {
    std::filesystem::remove_all(base_);
    std::filesystem::create_directories(job_);
    EXPECT_TRUE(state_.Create(R"({"a":1})").ok());
  }

  void Declare(const std::string& name, const std::string& schema, bool required = false,
               bool sensitive = false) {
    auto parsed = JsonSchema::Parse(Json::parse(schema), nullptr);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    declared_.insert_or_assign(name, Output{.name = name,
                                            .schema = *std::move(parsed),
                                            .required = required,
                                            .sensitive = sensitive});
  }

  std::string PathOf(const std::string& name) const { return outputs_ + "/" + name; }
  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(PathOf(name)) << content;
  }

  WrittenOutputs Read(bool requires_outputs = true) const {
    std::map<std::string, const Output*> declared;
    for (const auto& [name, output] : declared_) declared.emplace(name, &output);
    WrittenOutputs written = state_.ReadOutputs(declared, requires_outputs);
    if (written.problems.empty()) {
      v1::JobRecord record;
      record.set_job("j");
      record.set_node("n");
      record.set_sequence(1);
      *record.mutable_outputs() = written.outputs;
      EXPECT_TRUE(ValidateJobRecord(record).ok()) << ValidateJobRecord(record);
    }
    return written;
  }
  // Returns the value of the output a, or the problems.
  std::string Value() const {
    const WrittenOutputs written = Read();
    if (!written.problems.empty()) return absl::StrJoin(written.problems, "\n");
    return written.outputs.outputs_size() == 1 ? written.outputs.outputs(0).value() : "none";
  }

  const std::string base_ = ::testing::TempDir() + "/deployment-state";
  const std::string job_ = base_ + "/job";
  const std::string outputs_ = job_ + "/state/outputs";
  const DeploymentState state_{job_};
  std::map<std::string, Output> declared_;
};

TEST_F(DeploymentStateTest, AnyUserReadsTheParametersAndWritesOutputs) {
  struct stat info = {};
  for (const auto& [name, mode] : std::vector<std::pair<std::string, mode_t>>{
           {"", 0777}, {"/outputs", 0777}, {"/parameters.json", 0444}}) {
    ASSERT_EQ(stat((state_.folder() + name).c_str(), &info), 0) << name;
    EXPECT_EQ(info.st_mode & 07777, mode) << name;
  }
  std::ifstream file(state_.folder() + "/parameters.json");
  EXPECT_EQ(std::string((std::istreambuf_iterator<char>(file)), {}), R"({"a":1})");
  EXPECT_TRUE(absl::IsAlreadyExists(state_.Create("{}")));
  EXPECT_EQ(state_.WhyTooLarge(), "");
}

TEST_F(DeploymentStateTest, FolderOfARelativePathIsAbsolute) {
  EXPECT_TRUE(DeploymentState("jobs/x").folder().starts_with("/"));
  EXPECT_TRUE(DeploymentState("jobs/x").folder().ends_with("/jobs/x/state"));
}

TEST_F(DeploymentStateTest, OutputsAreSortedAndDeclared) {
  Declare("b", "true");
  Declare("a", "true");
  Declare("none", "true");
  Write("b", "1");
  Write("a", "2");
  Write("other", "3");
  const WrittenOutputs written = Read();
  EXPECT_THAT(written.problems, IsEmpty());
  ASSERT_EQ(written.outputs.outputs_size(), 2);
  EXPECT_EQ(written.outputs.outputs(0).name(), "a");
  EXPECT_EQ(written.outputs.outputs(0).value(), "2");
  EXPECT_EQ(written.outputs.outputs(1).name(), "b");
}

TEST_F(DeploymentStateTest, JsonIsAValueAndTheRestIsText) {
  Declare("a", "true");
  for (const auto& [content, value] : std::vector<std::pair<std::string, std::string>>{
           {"{\"x\": [1, null]}\n", R"({"x":[1,null]})"},
           {"12\n", "12"},
           {"\"text\"", R"("text")"},
           {"plain\n", R"("plain")"},
           {"two\nlines\n\n", R"("two\nlines\n")"},
           {"", R"("")"},
           {"{\"x\":", R"("{\"x\":")"},
           {"123456789012345678901234567890\n", "123456789012345678901234567890"},
           {"[9007199254740993, 0.10]", "[9007199254740993,0.10]"},
           {"https://a/\xc3\xa4", "\"https://a/\xc3\xa4\""}}) {
    Write("a", content);
    EXPECT_EQ(Value(), value);
  }
}

TEST_F(DeploymentStateTest, InvalidValuesAreProblems) {
  Declare("a", R"({"type": "integer"})");
  Write("a", "text");
  EXPECT_EQ(Value(), "a: \"text\" is a string, and must be an integer");
  Write("a", "\xff");
  EXPECT_EQ(Value(), "a: is not UTF-8");
  Declare("a", "true");
  Write("a", std::string(100, '[') + std::string(100, ']'));
  EXPECT_THAT(Value(), HasSubstr("levels"));
  Write("a", std::string(16'000, '['));
  EXPECT_THAT(Value(), HasSubstr("\"[[["));
}

TEST_F(DeploymentStateTest, MissingRequiredOutputIsAProblem) {
  Declare("a", "true", /*required=*/true);
  Declare("b", "true");
  EXPECT_THAT(Read(/*requires_outputs=*/false).problems, IsEmpty());
  EXPECT_THAT(Read().problems, ElementsAre("a: is missing"));
  std::filesystem::remove_all(outputs_);
  EXPECT_THAT(Read().problems, ElementsAre("a: is missing"));
}

TEST_F(DeploymentStateTest, SensitiveValueIsNeitherReturnedNorShown) {
  Declare("a", R"({"type": "string", "enum": ["x"]})", /*required=*/true, /*sensitive=*/true);
  Write("a", "swordfish");
  EXPECT_EQ(Value(), "a: the schema does not admit the value");
  Write("a", "x");
  const WrittenOutputs written = Read();
  EXPECT_THAT(written.problems, IsEmpty());
  ASSERT_EQ(written.outputs.outputs_size(), 1);
  EXPECT_EQ(written.outputs.outputs(0).value(), "");
}

// A link could name any file of the node.
TEST_F(DeploymentStateTest, OnlyRegularFilesAreRead) {
  Declare("a", "true");
  std::ofstream(base_ + "/secret") << "secret";
  for (const char* target : {"/secret", "/none", "/job/state/parameters.json"}) {
    std::filesystem::create_symlink(base_ + target, PathOf("a"));
    EXPECT_EQ(Value(), "a: cannot be read: it is not a regular file");
    std::filesystem::remove(PathOf("a"));
  }
  std::filesystem::create_directory(PathOf("a"));
  EXPECT_EQ(Value(), "a: cannot be read: it is not a regular file");
  std::filesystem::remove(PathOf("a"));
  ASSERT_EQ(mkfifo(PathOf("a").c_str(), 0644), 0);  // no writer: a read would wait
  EXPECT_EQ(Value(), "a: cannot be read: it is not a regular file");
}

TEST_F(DeploymentStateTest, LinkInPlaceOfAFolderIsNotFollowed) {
  Declare("a", "true");
  std::filesystem::create_directories(base_ + "/other/outputs");
  std::ofstream(base_ + "/other/outputs/a") << "secret";
  std::filesystem::remove_all(outputs_);
  std::filesystem::create_directory_symlink(base_ + "/other/outputs", outputs_);
  EXPECT_EQ(Value(), "/state/outputs is not a folder that the agent may read");
  std::filesystem::remove_all(state_.folder());
  std::filesystem::create_directory_symlink(base_ + "/other", state_.folder());
  EXPECT_EQ(Value(), "/state/outputs is not a folder that the agent may read");
}

TEST_F(DeploymentStateTest, OutputsOf32KibTogetherAreRead) {
  Declare("a", "true");
  Declare("b", "true");
  // As a record: two names, and the marks around two texts.
  const size_t most = kMaxOutputs - 6;
  Write("a", std::string(most / 2, 'x'));
  Write("b", std::string(most - most / 2, 'x'));
  EXPECT_THAT(Read().problems, IsEmpty());
  Write("b", std::string(most - most / 2 + 1, 'x'));
  EXPECT_THAT(Read().problems, ElementsAre("the outputs are larger than 32 KiB together"));
  Write("b", std::string(kMaxOutputs, 'x'));
  EXPECT_THAT(Read().problems, ElementsAre("the outputs are larger than 32 KiB together"));
  // A control character has six bytes in JSON.
  Write("a", "");
  Write("b", std::string(kMaxOutputs / 4, '\1'));
  EXPECT_THAT(Read().problems, ElementsAre("the outputs are larger than 32 KiB together"));
}

TEST_F(DeploymentStateTest, MoreThan64OutputsAreAProblem) {
  for (int i = 0; i < 64; ++i) {
    Declare(absl::StrCat("a", i), "true");
    Write(absl::StrCat("a", i), "1");
  }
  EXPECT_EQ(Read().outputs.outputs_size(), 64);
  Declare("b", "true");
  EXPECT_THAT(Read().problems, IsEmpty()) << "it is not written";
  Write("b", "1");
  EXPECT_THAT(Read().problems, ElementsAre("more than 64 outputs"));
}

TEST_F(DeploymentStateTest, StateIsRemoved) {
  Write("a", "1");
  EXPECT_TRUE(state_.Remove().ok());
  EXPECT_FALSE(std::filesystem::exists(state_.folder()));
  EXPECT_TRUE(state_.Remove().ok());
}

}  // namespace
}  // namespace muster
