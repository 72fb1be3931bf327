#include "services/common/base/printable.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(PrintableTest, ControlCharactersAreReplaced) {
  EXPECT_EQ(Printable("na\x1b[31mme"), "na?[31mme");
  EXPECT_EQ(Printable("two\nlines"), "two lines");
  EXPECT_EQ(Printable("Knoten-\xc3\xa4"), "Knoten-\xc3\xa4");
  EXPECT_EQ(Printable("\xff"), "?");
}

}  // namespace
}  // namespace muster
