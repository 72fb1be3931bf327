#include "services/common/base/fork_exec.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/subprocess.h"
#include "services/common/base/unique_fd.h"

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

TEST(ForkExecTest, HeldChildKeepsNoInheritedDescriptor) {
  std::array<int, 2> ends;
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  short events = 0;
  SubprocessOptions options;
  options.argv = {"/bin/true"};
  options.before_start = [&](pid_t) {
    write_end.reset();
    pollfd closed = {read_end.get(), POLLIN, 0};
    poll(&closed, 1, 30'000);
    events = closed.revents;
    return absl::OkStatus();
  };
  auto process = Subprocess::Start(std::move(options));
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ(events, POLLHUP) << "the child holds the other end of the pipe";
  EXPECT_TRUE((*process)->Wait(absl::Minutes(1))->ok());
}

TEST(ForkExecTest, KnowsTheUsersOfThisMachine) {
  EXPECT_EQ(ProcessUser::Find("root")->uid, 0);
  EXPECT_EQ(ReasonOf(ProcessUser::Find("no-such-user").status()), "NO_SUCH_USER");
}

}  // namespace
}  // namespace muster
