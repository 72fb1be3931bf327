#include "cli/commands/labels.h"

#include "cli/exit_code.h"
#include "gtest/gtest.h"

namespace muster::cli {
namespace {

TEST(LabelsTest, TextsAreSplitAtTheFirstEqualsSign) {
  LabelMap labels;
  ASSERT_TRUE(AddLabels({"rack=b1", "empty=", "odd=a=b"}, &labels).ok());
  EXPECT_EQ(LabelText(labels), "empty=,odd=a=b,rack=b1");
  EXPECT_EQ(LabelText({}), "-");
}

TEST(LabelsTest, InvalidLabelIsAUsageError) {
  for (const std::vector<std::string>& texts :
       std::vector<std::vector<std::string>>{{"rack"}, {"=b1"}, {""}, {"a=1", "a=2"}}) {
    LabelMap labels;
    EXPECT_EQ(ExitCodeOf(AddLabels(texts, &labels)), kExitUsage) << texts.front();
  }
}

}  // namespace
}  // namespace muster::cli
