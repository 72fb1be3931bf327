// How git is started and bounded. testing/e2e/build_git_test.go fetches by the real git from a real
// server.
#include "cli/sources/git_source.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class GitSourceTest : public ::testing::Test {
 protected:
  // Returns the outcome with a program in place of git.
  absl::Status Run(const std::string& script, absl::Duration limit = absl::Minutes(1),
                   const std::string& ref = "main") {
    const std::string program = folder_ + "/git";
    std::ofstream(program) << "#!/bin/sh\n" << script << "\n";
    chmod(program.c_str(), 0755);
    GitOptions options;
    options.program = program;
    options.time_limit = limit;
    options.max_file = 100'000;
    options.ca_file = ca_file_;
    SourceFiles files("source", {.bytes = 1'000}, folder_);
    return ReadGitSource({"https://git.example/w", "git.example", ref, folder_of_repository_},
                         options, files)
        .status();
  }

  std::string Read(const std::string& name) {
    std::ifstream file(folder_ + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const std::string folder_ = ::testing::TempDir();
  std::string ca_file_;
  std::string folder_of_repository_;
};

TEST_F(GitSourceTest, TimeAndSizeAreBounded) {
  const absl::Status late = Run("sleep 100", absl::Seconds(1));
  EXPECT_EQ(ReasonOf(late), "GIT_FAILED");
  EXPECT_THAT(std::string(late.message()), HasSubstr("it took longer than 1s"));
  const absl::Status large =
      Run(absl::StrCat("head -c 1000000 /dev/zero >", folder_, "/pack || exit 7"));
  EXPECT_EQ(ReasonOf(large), "GIT_FAILED") << large;
  EXPECT_LE(std::filesystem::file_size(folder_ + "/pack"), 100'000u);
}

TEST_F(GitSourceTest, GitHasAnEnvironmentOfItsOwn) {
  setenv("GIT_SSH_COMMAND", "touch /tmp/x", 1);
  setenv("GIT_CONFIG_PARAMETERS", "'a.b=c'", 1);
  EXPECT_FALSE(Run(absl::StrCat("env >", folder_, "/env; echo \"$@\" >", folder_,
                                "/argv; echo cause >&2; exit 1"))
                   .ok());
  unsetenv("GIT_SSH_COMMAND");
  unsetenv("GIT_CONFIG_PARAMETERS");
  const std::string environment = Read("env");
  EXPECT_THAT(environment, HasSubstr("GIT_ALLOW_PROTOCOL=https\n"));
  EXPECT_THAT(environment, HasSubstr("GIT_CONFIG_GLOBAL=/dev/null\n"));
  EXPECT_THAT(environment, Not(HasSubstr("GIT_SSH_COMMAND")));
  EXPECT_THAT(environment, Not(HasSubstr("GIT_CONFIG_PARAMETERS")));
  for (const char* option : {"protocol.allow=never", "http.followRedirects=false",
                             "core.hooksPath=/dev/null", "credential.helper="}) {
    EXPECT_THAT(Read("argv"), HasSubstr(option));
  }
}

TEST_F(GitSourceTest, LastLineIsTheCause) {
  const absl::Status status = Run("echo first >&2; echo 'fatal: the cause' >&2; exit 128");
  EXPECT_THAT(std::string(status.message()), HasSubstr("fatal: the cause"));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("first")));
}

TEST_F(GitSourceTest, MissingRefIsNamedAndAShortCommitHasItsNextStep) {
  const std::string script = "echo \"fatal: couldn't find remote ref\" >&2; exit 128";
  const absl::Status missing = Run(script, absl::Minutes(1), "v9");
  EXPECT_THAT(std::string(missing.message()), HasSubstr("it has no branch and no tag v9"));
  EXPECT_EQ(NextStepOf(missing),
            "Choose one of those that it has: git ls-remote https://git.example/w");
  const absl::Status short_commit = Run(script, absl::Minutes(1), "0123abc");
  EXPECT_THAT(std::string(short_commit.message()), HasSubstr("by a part of its id"));
  EXPECT_THAT(NextStepOf(short_commit), HasSubstr("git rev-parse 0123abc"));
  // A name that no commit begins with.
  EXPECT_THAT(NextStepOf(Run(script, absl::Minutes(1), "0123abx")), HasSubstr("ls-remote"));
}

TEST_F(GitSourceTest, CaFileIsCheckedBeforeGitRuns) {
  ca_file_ = folder_ + "/none.pem";
  const std::string script = absl::StrCat("touch ", folder_, "/ran; exit 1");
  const absl::Status missing = Run(script);
  EXPECT_EQ(ReasonOf(missing), "FILE_NOT_FOUND") << "as for other missing files";
  EXPECT_THAT(std::string(missing.message()), HasSubstr(ca_file_));
  EXPECT_THAT(std::string(missing.message()), HasSubstr("(--git-ca, MUSTER_GIT_CA)"));
  ca_file_ = folder_ + "/ca.pem";
  std::ofstream(ca_file_) << "a key";
  EXPECT_THAT(std::string(Run(script).message()), HasSubstr("it has no certificate in PEM"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/ran"));
}

TEST_F(GitSourceTest, CertificateOfAnotherCaNamesTheFile) {
  ca_file_ = folder_ + "/ca.pem";
  std::ofstream(ca_file_) << "-----BEGIN CERTIFICATE-----\n";
  const std::string script = "echo 'fatal: server certificate verification failed' >&2; exit 128";
  EXPECT_THAT(NextStepOf(Run(script)), HasSubstr("none of the CAs in " + ca_file_));
  ca_file_ = "";
  EXPECT_THAT(NextStepOf(Run(script)), HasSubstr("--git-ca FILE"));
}

}  // namespace
}  // namespace muster::cli
