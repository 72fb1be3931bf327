#include "services/common/base/fork_exec.h"

#include <unistd.h>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/subprocess.h"

namespace muster {
namespace {

std::string OutputOf(const std::string& script, std::optional<ProcessUser> user) {
  SubprocessOptions options;
  options.argv = {"/bin/sh", "-c", script};
  options.out = ChildOutput::Tail(4096);
  options.user = std::move(user);
  auto process = Subprocess::Start(std::move(options));
  EXPECT_TRUE(process.ok()) << process.status();
  if (!process.ok()) return "";
  EXPECT_TRUE((*process)->Wait(absl::Minutes(1))->ok());
  return (*process)->StdoutTail();
}

TEST(ForkExecTest, RunsAsAnotherUserWithThatOnesGroups) {
  if (geteuid() != 0) GTEST_SKIP() << "takes root";
  const auto nobody = ProcessUser::Find("nobody");
  ASSERT_TRUE(nobody.ok()) << nobody.status();
  EXPECT_EQ(OutputOf("id -un; id -Gn; grep CapEff /proc/self/status | tr -d '\\t'", *nobody),
            OutputOf("id -un nobody; id -Gn nobody; echo CapEff:0000000000000000", std::nullopt));
}

TEST(ForkExecTest, KnowsTheUsersOfThisMachine) {
  EXPECT_EQ(ProcessUser::Find("root")->uid, 0);
  EXPECT_EQ(ReasonOf(ProcessUser::Find("no-such-user").status()), "NO_SUCH_USER");
}

}  // namespace
}  // namespace muster
