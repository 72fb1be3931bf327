#include "services/common/base/new_name.h"

#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

TEST(ValidateNewNameTest, AcceptsHyphensThatAreNotFirst) {
  for (const char* name : {"n", "n-1", "n-", "_-x"}) {
    EXPECT_TRUE(ValidateNewName("node", name).ok()) << name;
  }
}

TEST(ValidateNewNameTest, RefusesNamesThatLookLikeOptions) {
  for (const char* name : {"-", "-n", "--node"}) {
    EXPECT_EQ(ReasonOf(ValidateNewName("node", name)), "INVALID_NAME") << name;
  }
  EXPECT_EQ(ValidateNewName("node", "-n").message(),
            "invalid name \"-n\" of node: it begins with a hyphen, as an option does");
}

TEST(ValidateNewNameTest, RefusesWhatValidateNameRefuses) {
  EXPECT_EQ(ReasonOf(ValidateNewName("node", ".x")), "INVALID_NAME");
  EXPECT_EQ(ReasonOf(ValidateNewName("node", "")), "INVALID_NAME");
}

}  // namespace
}  // namespace muster
