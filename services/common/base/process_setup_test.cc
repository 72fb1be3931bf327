#include "services/common/base/process_setup.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "gtest/gtest.h"

namespace muster {
namespace {

// Runs `body` in a separate process, because the settings apply to a process.
template <typename Body>
int InChild(Body body) {
  const pid_t pid = fork();
  if (pid == 0) _exit(body());
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return status;
}

TEST(SetUpProcessTest, NoCoreDumpsNoSigpipePrivateFiles) {
  const int status = InChild([] {
    if (!SetUpProcess().ok()) return 1;
    rlimit core = {};
    getrlimit(RLIMIT_CORE, &core);
    if (core.rlim_cur != 0 || core.rlim_max != 0 || prctl(PR_GET_DUMPABLE) != 0) return 2;
    if (umask(0) != 077) return 3;
    int ends[2];
    if (pipe(ends) != 0) return 4;
    close(ends[0]);
    return write(ends[1], "x", 1) == -1 ? 0 : 5;  // without SIGPIPE it is an error
  });
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(SignalWaiterTest, ReportsTheSignal) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const int status = InChild([signal] {
      SignalWaiter waiter;
      kill(getpid(), signal);
      return waiter.Wait() == signal && waiter.Wait() == signal ? 0 : 1;
    });
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
}

TEST(SignalWaiterTest, ASignalReachesItFromOtherThreads) {
  const int status = InChild([] {
    SignalWaiter waiter;
    std::thread other([] { kill(getpid(), SIGTERM); });
    const int signal = waiter.Wait();
    other.join();
    return signal == SIGTERM ? 0 : 1;
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(SignalWaiterTest, TheSecondSignalEndsTheProcess) {
  const int status = InChild([] {
    SignalWaiter waiter;
    kill(getpid(), SIGTERM);
    waiter.Wait();
    kill(getpid(), SIGINT);
    for (;;) pause();
    return 0;
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGINT);
}

TEST(SignalWaiterTest, TheProgramItselfMayStop) {
  const int status = InChild([] {
    SignalWaiter waiter;
    std::thread other([&] { waiter.RequestStop(); });
    const int signal = waiter.Wait();
    other.join();
    return signal;
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace muster
