#include "services/common/base/sha256.h"

#include <utility>

#include "gtest/gtest.h"

namespace muster {
namespace {

// FIPS 180-4's examples.
TEST(Sha256Test, PublishedVectors) {
  EXPECT_EQ(ToHex(Sha256::Of("")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(ToHex(Sha256::Of("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(ToHex(Sha256::Of(std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256Test, PiecesGiveTheWholeAndFinishBeginsAnew) {
  Sha256 hash;
  hash.Update("a");
  Sha256 moved = std::move(hash);
  moved.Update("");
  moved.Update("bc");
  EXPECT_EQ(moved.Finish(), Sha256::Of("abc"));
  EXPECT_EQ(moved.Finish(), Sha256::Of(""));
}

TEST(HexTest, RoundTripAndRefusal) {
  EXPECT_EQ(ToHex(std::string_view("\x00\xff\x1a", 3)), "00ff1a");
  EXPECT_EQ(FromHex("00fF1a"), std::string("\x00\xff\x1a", 3));
  EXPECT_EQ(FromHex(""), "");
  EXPECT_EQ(FromHex("0"), std::nullopt);
  EXPECT_EQ(FromHex("0g"), std::nullopt);
  EXPECT_EQ(FromHex("0x"), std::nullopt);
}

}  // namespace
}  // namespace muster
