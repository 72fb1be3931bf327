#include "services/common/templates/outputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OutputsTest : public ::testing::Test {
 protected:
  OutputsTest() {
    v1::Command::Deployment content;
    content.set_action("deploy");
    content.set_type_document(
        absl::StrCat("apiVersion: muster/v1\nkind: TemplateType\nname: t\nversion: 1.0.0\n"
                     "contract: 1\nimage: a@sha256:",
                     std::string(64, 'a'),
                     "\n"
                     "outputs:\n"
                     "  port: {schema: {type: integer, maximum: 65535}}\n"
                     "  token: {sensitive: true}\n"
                     "  url: {schema: {type: string}, required: true}\n"));
    auto resolved = ResolveDeployment(content);
    EXPECT_TRUE(resolved.ok()) << resolved.status();
    deployment_ = *std::move(resolved);
  }

  std::vector<std::string> Faults(
      const std::vector<std::pair<std::string, std::string>>& values) const {
    v1::JobRecord::Outputs outputs;
    for (const auto& [name, value] : values) {
      auto& output = *outputs.add_outputs();
      output.set_name(name);
      output.set_value(value);
    }
    return FaultsOfOutputs(outputs, deployment_);
  }

  ResolvedDeployment deployment_;
};

TEST_F(OutputsTest, DeclaredOutputsAreAdmitted) {
  EXPECT_THAT(Faults({{"url", "\"u\""}}), IsEmpty());
  EXPECT_THAT(Faults({{"port", "80"}, {"token", ""}, {"url", "\"u\""}}), IsEmpty());
}

TEST_F(OutputsTest, OthersAreFaults) {
  EXPECT_THAT(Faults({}), ElementsAre("url: is missing"));
  EXPECT_THAT(Faults({{"url", "\"u\""}, {"zz", "7"}}), ElementsAre(HasSubstr("zz: no document")));
  EXPECT_THAT(Faults({{"token", "\"t\""}, {"url", "\"u\""}}), ElementsAre("token: is sensitive"));
  EXPECT_THAT(Faults({{"url", "5"}}), ElementsAre(HasSubstr("url")));
  EXPECT_THAT(Faults({{"port", "65536"}, {"url", "\"u\""}}), ElementsAre(HasSubstr("port")));
  for (const char* value : {"", "not json", "\"u", "1 2"}) {
    EXPECT_THAT(Faults({{"url", value}}), ElementsAre("url: is not JSON")) << value;
  }
}

TEST_F(OutputsTest, ActionDestroyRequiresNone) {
  deployment_.action = "destroy";
  EXPECT_THAT(Faults({}), IsEmpty());
  EXPECT_THAT(Faults({{"url", "5"}}), ElementsAre(HasSubstr("url")));
}

// Programs that print such a value in JSON would use up their stack.
TEST_F(OutputsTest, DeepValueIsAFault) {
  const std::string deep = absl::StrCat(std::string(16'000, '['), std::string(16'000, ']'));
  EXPECT_THAT(Faults({{"url", deep}}), ElementsAre(HasSubstr("more than 32 levels")));
  EXPECT_THAT(Faults({{"url", R"({"a": 1, "a": 2})"}}),
              ElementsAre(HasSubstr("two members of one name")));
}

}  // namespace
}  // namespace muster
