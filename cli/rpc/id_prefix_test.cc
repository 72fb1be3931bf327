#include "cli/rpc/id_prefix.h"

#include "gtest/gtest.h"

namespace muster::cli {
namespace {

constexpr IdKind kKind = {"run", "runs", "muster runs", 4};

absl::StatusOr<std::string> Resolve(const std::string& text) {
  return ResolveId(kKind, text, absl::NotFoundError("none"),
                   [](const std::string& token) -> absl::StatusOr<IdPage> {
                     if (token.empty()) return IdPage{{"ab12", "cd34"}, "2"};
                     return IdPage{{"ab34", "ef56"}, ""};
                   });
}

TEST(ResolveIdTest, IdIsNotLookedUp) { EXPECT_EQ(*Resolve("0123"), "0123"); }

TEST(ResolveIdTest, UniquePrefixIsFoundOnEachPage) {
  EXPECT_EQ(*Resolve("c"), "cd34");
  EXPECT_EQ(*Resolve("ef"), "ef56");
}

TEST(ResolveIdTest, PrefixOfSeveralNamesThem) {
  EXPECT_EQ(Resolve("ab").status().message(), "several runs begin with ab: ab12, ab34");
}

TEST(ResolveIdTest, PrefixOfNoneFails) { EXPECT_TRUE(absl::IsNotFound(Resolve("9").status())); }

TEST(ResolveIdTest, OtherTextIsNoPrefix) {
  for (const char* text : {"", "xyz", "AB", "01234"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Resolve(text).status())) << text;
  }
}

}  // namespace
}  // namespace muster::cli
