#include "cli/sources/git_address.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(GitAddressTest, PartsAreRead) {
  const auto address =
      ParseGitAddress("git+https://Git.Example:8443/team/web.git@release/1.4#site/public");
  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_EQ(address->url, "https://Git.Example:8443/team/web.git");
  EXPECT_EQ(address->host, "git.example");
  EXPECT_EQ(address->ref, "release/1.4");
  EXPECT_EQ(address->folder, "site/public");
  EXPECT_EQ(ParseGitAddress("git+https://h/w@main")->folder, "");
  EXPECT_EQ(ParseGitAddress("git+https://h/w@v1")->host, "h");
}

TEST(GitAddressTest, OtherAddressesAreRefused) {
  for (const std::string& source : {
           std::string("git+http://h/w@main"),
           std::string("git+ssh://h/w@main"),
           std::string("git+file:///w@main"),
           std::string("git+ext::sh -c x@main"),
           std::string("git+https://h/w"),
           std::string("git+https://h/w@"),
           std::string("git+https://h@main"),
           std::string("git+https:///w@main"),
           std::string("git+https://-h/w@main"),
           std::string("git+https://h/w@--upload-pack=x"),
           std::string("git+https://h/w@-q"),
           std::string("git+https://h/w@a..b"),
           std::string("git+https://h/w@a:b"),
           std::string("git+https://h/w@+a"),
           std::string("git+https://h/w@a^{}"),
           std::string("git+https://h/w@a b"),
           std::string("git+https://h/w@a.lock"),
           std::string("git+https://h/w@a/"),
           std::string("git+https://h/w?x=y@main"),
           std::string("git+https://h/w\n@main"),
           std::string("git+https://h/w@main\n--upload-pack=x"),
           std::string("git+https://h/w@main#../x"),
           std::string("git+https://h/w@main#/x"),
           std::string("git+https://h/w@main#"),
           std::string("https://h/w@main"),
           "git+https://h/" + std::string(1'100, 'a') + "@main",
       }) {
    EXPECT_TRUE(IsGitAddress(source)) << source;
    EXPECT_EQ(ReasonOf(ParseGitAddress(source).status()), "SOURCE_UNUSABLE") << source;
  }
  EXPECT_FALSE(IsGitAddress("site.zip"));
  EXPECT_FALSE(IsGitAddress("/srv/git"));
}

TEST(GitAddressTest, PasswordIsRefusedAndNotShown) {
  const absl::Status status = ParseGitAddress("git+https://bob:s3cret@h/w@main").status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("a user or a password"));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("s3cret")));
}

}  // namespace
}  // namespace muster::cli
