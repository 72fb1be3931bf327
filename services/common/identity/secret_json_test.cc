#include "services/common/identity/secret_json.h"

#include <string>

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(SecretJsonTest, TextsAtAnyDepthAreWiped) {
  nlohmann::json json = {{"a", "secret"}, {"b", {1, nullptr, {{"c", "deep"}}}}, {"d", true}};
  WipeTexts(&json);
  EXPECT_EQ(json["a"], std::string(6, '\0'));
  EXPECT_EQ(json["b"][2]["c"], std::string(4, '\0'));
  EXPECT_EQ(json["b"][0], 1);
  nlohmann::json number = 3;
  WipeTexts(&number);
  EXPECT_EQ(number, 3);
}

}  // namespace
}  // namespace muster
