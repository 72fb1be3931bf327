#include "services/common/base/utf8.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(PrintableLengthTest, CountsTheBytesOfACharacter) {
  EXPECT_EQ(PrintableLength("a"), 1u);
  EXPECT_EQ(PrintableLength(" x"), 1u);
  EXPECT_EQ(PrintableLength("\xc3\xa4x"), 2u);
  EXPECT_EQ(PrintableLength("\xe2\x82\xac"), 3u);
  EXPECT_EQ(PrintableLength("\xf0\x9f\x98\x80"), 4u);
}

TEST(PrintableLengthTest, RefusesControlCharacters) {
  for (const char* text : {"\n", "\x1b[0m", "\x7f", "\xc2\x9b", "\xe2\x80\xa8", "\xe2\x80\xae"}) {
    EXPECT_EQ(PrintableLength(text), 0u) << text;
  }
  EXPECT_EQ(PrintableLength(std::string_view("\0", 1)), 0u);
}

TEST(PrintableLengthTest, RefusesWhatIsNotUtf8) {
  for (const char* text : {"\x80", "\xff", "\xc3", "\xe2\x82", "\xc3(", "\xc0\xaf", "\xe0\x80\xaf",
                           "\xed\xa0\x80", "\xf4\x90\x80\x80"}) {
    EXPECT_EQ(PrintableLength(text), 0u) << text;
  }
}

TEST(IsUtf8Test, TakesControlCharactersAndRefusesHalves) {
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8("a\tb\n\x1b[K\xc3\xa4"));
  EXPECT_FALSE(IsUtf8("\xc3"));
  EXPECT_FALSE(IsUtf8("a\xffz"));
}

TEST(IsUtf8Test, LooksAtEveryByteOfALongText) {
  for (size_t at = 0; at < 40; ++at) {
    std::string text(40, 'x');
    text[at] = '\xe9';
    EXPECT_FALSE(IsUtf8(text)) << at;
    text.replace(at, 1, "\xc3\xa9");
    EXPECT_TRUE(IsUtf8(text)) << at;
  }
}

TEST(CleanUtf8Test, ReplacesWhatIsNotUtf8AndNothingElse) {
  EXPECT_EQ(CleanUtf8(""), "");
  EXPECT_EQ(CleanUtf8("a\tb\xc3\xa4\x1b"), "a\tb\xc3\xa4\x1b");
  EXPECT_EQ(CleanUtf8("caf\xe9"), "caf\xef\xbf\xbd");
  EXPECT_EQ(CleanUtf8("\xff\xc3\xa9\xc3"), "\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd");
  EXPECT_EQ(CleanUtf8(std::string_view("\0\x80", 2)), std::string_view("\0\xef\xbf\xbd", 4));
}

TEST(CutUtf8Test, CutsBetweenCharacters) {
  EXPECT_EQ(CutUtf8("abc", 3), "abc");
  EXPECT_EQ(CutUtf8("abc", 2), "ab");
  EXPECT_EQ(CutUtf8("a\xC3\xA9", 2), "a");
  EXPECT_EQ(CutUtf8("\xE2\x82\xAC", 2), "");
}

}  // namespace
}  // namespace muster
