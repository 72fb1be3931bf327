#include "services/common/base/random_id.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(RandomIdTest, HasTheLengthAndIsNeverTheSame) {
  const std::string id = RandomHex(16);
  EXPECT_EQ(id.size(), 32u);
  EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(id, RandomHex(16));
}

}  // namespace
}  // namespace muster
