#include "services/common/base/names.h"

#include <string>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/utf8.h"

namespace muster {
namespace {

TEST(ValidateNameTest, AcceptsWhatTheRuleAllows) {
  for (const char* name : {"n", "node-1", "a.b_c-D", "e2e", "-x", "_x", "10.0.0.1", "a..b"}) {
    EXPECT_TRUE(ValidateName("node", name).ok()) << name;
  }
  EXPECT_TRUE(ValidateName("node", std::string(253, 'a')).ok());
}

TEST(ValidateNameTest, RefusesAllElse) {
  for (const char* name : {"", ".", "..", ".hidden", "a/b", "../x", "a b", "a\nb", "n\xc3\xa4h",
                           "a%2fb", "a\\b", "a:b"}) {
    const absl::Status status = ValidateName("node", name);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_EQ(ReasonOf(status), "INVALID_NAME") << name;
  }
  EXPECT_FALSE(ValidateName("node", std::string(254, 'a')).ok());
  EXPECT_FALSE(ValidateName("node", std::string_view("a\0b", 3)).ok());
}

TEST(ValidateNameTest, TheMessageNamesFieldAndRule) {
  const absl::Status status = ValidateName("plugin", ".x\n");
  EXPECT_EQ(status.message(), "invalid name \".x_\" of plugin: it begins with a dot");
  EXPECT_EQ(ValidateName("node", "../x").message(),
            "invalid name \"../x\" of node: it begins with a dot");
  EXPECT_NE(NextStepOf(status).find("1 to 253"), std::string::npos);
  EXPECT_LT(ValidateName("plugin", std::string(100'000, '/')).message().size(), 200u);
}

TEST(SafeFileNameTest, OrdinaryNamesStay) {
  for (const char* name :
       {"results.tar.gz", "a b (1).txt", ".profile", "n\xc3\xa4h.json", "...", "50%.txt", "-rf"}) {
    EXPECT_EQ(SafeFileName(name), name);
  }
  EXPECT_EQ(SafeFileName(std::string(255, 'x')), std::string(255, 'x'));
}

TEST(SafeFileNameTest, OddNamesBecomeSafe) {
  EXPECT_EQ(SafeFileName(""), "_");
  EXPECT_EQ(SafeFileName("."), "_");
  EXPECT_EQ(SafeFileName(".."), "__");
  EXPECT_EQ(SafeFileName("/"), "_");
  EXPECT_EQ(SafeFileName("../../etc/passwd"), ".._.._etc_passwd");
  EXPECT_EQ(SafeFileName("..\\x"), ".._x");
  EXPECT_EQ(SafeFileName("a\nb\x1b[31m"), "a_b_[31m");
  EXPECT_EQ(SafeFileName(std::string_view("a\0b", 3)), "a_b");
  EXPECT_EQ(SafeFileName("\xff\xfe"), "__");
}

TEST(SafeFileNameTest, LongNamesKeepBeginningAndEnd) {
  const std::string name = SafeFileName(std::string(400, 'x') + ".tar.gz");
  EXPECT_EQ(name.size(), 255u);
  EXPECT_TRUE(name.starts_with("xxx"));
  EXPECT_TRUE(name.ends_with("x.tar.gz"));
}

TEST(SafeFileNameTest, LongNamesAreCutBetweenCharacters) {
  for (int shift = 0; shift < 4; ++shift) {
    std::string raw(shift, 'x');
    for (int i = 0; i < 100; ++i) raw += "\xf0\x9f\x98\x80";
    const std::string name = SafeFileName(raw);
    EXPECT_LE(name.size(), 255u);
    for (std::string_view rest = name; !rest.empty();) {
      const size_t length = PrintableLength(rest);
      ASSERT_GT(length, 0u) << shift;
      rest.remove_prefix(length);
    }
  }
}

TEST(ListNamesTest, NamesBeyondTheMostAreCounted) {
  EXPECT_EQ(ListNames({}, 2), "");
  EXPECT_EQ(ListNames({"a", "b"}, 2), "a, b");
  EXPECT_EQ(ListNames({"a", "b", "c", "d"}, 2), "a, b and 2 more");
}

}  // namespace
}  // namespace muster
