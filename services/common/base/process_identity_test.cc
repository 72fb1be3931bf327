#include "services/common/base/process_identity.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(ProcessIdentityTest, SamePidWithAnotherStartOrBootIsAnotherProcess) {
  const auto self = IdentifyProcess(getpid());
  ASSERT_TRUE(self.has_value());
  EXPECT_TRUE(IsRunning(*self));
  EXPECT_EQ(self->boot_id.size(), 36u);
  ProcessIdentity other = *self;
  ++other.start_ticks;
  EXPECT_FALSE(IsRunning(other));
  other = *self;
  other.boot_id = "another boot";
  EXPECT_FALSE(IsRunning(other));
  EXPECT_FALSE(IdentifyProcess(0).has_value());
}

TEST(ProcessIdentityTest, GroupOfTheProcessIsRead) {
  EXPECT_EQ(ReadProcessStat(getpid())->group, getpgrp());
}

TEST(ProcessIdentityTest, ZombieIsNotRunning) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info = {};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(IdentifyProcess(child).has_value());
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace muster
