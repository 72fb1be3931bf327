// Loss of the process, full and failing disks: acknowledged commands are present, refused ones have
// no effect, and a failed sync stops the store.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "services/common/base/error.h"
#include "services/common/store/sqlite/connection.h"
#include "services/common/store/sqlite/fault_vfs.h"
#include "services/common/store/sqlite/sqlite_harness.h"

namespace muster {
namespace {

using sqlite::Fault;
using sqlite::FaultVfs;

constexpr int kNodes = 3000;

CreateRun Plan() {
  std::vector<PlannedPair> pairs;
  for (int i = 0; i < kNodes; ++i) pairs.push_back({"facts", absl::StrCat("n", i)});
  return MakeRun(kRun, std::move(pairs));
}

// Commits from several threads and writes the number of each acknowledged result into the pipe
// until it is killed.
[[noreturn]] void CommitUntilKilled(const std::string& path, int first, int pipe) {
  auto store = OpenSqliteStore({.path = path});
  if (!store.ok()) _exit(3);
  for (int i = first; i < kNodes; ++i) {
    (*store)->Apply(Genuine(KeyOf(absl::StrCat("n", i)), absl::StrCat("content ", i)),
                    [i, pipe](absl::StatusOr<CommitResult::Result> result) {
                      if (!result.ok()) _exit(4);
                      if (write(pipe, &i, sizeof(i)) != sizeof(i)) _exit(5);
                    });
  }
  while (true) pause();
}

// Starts such a child, kills it after `answers` acknowledgements, and returns all of them.
std::vector<int> KillAfter(const std::string& path, int first, int answers) {
  int pipes[2];
  EXPECT_EQ(pipe(pipes), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(pipes[0]);
    CommitUntilKilled(path, first, pipes[1]);
  }
  close(pipes[1]);
  std::vector<int> answered;
  int number;
  while (read(pipes[0], &number, sizeof(number)) == sizeof(number)) {
    answered.push_back(number);
    if (static_cast<int>(answered.size()) == answers) kill(child, SIGKILL);
    if (number == kNodes - 1) kill(child, SIGKILL);
  }
  close(pipes[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status)) << "exit code " << WEXITSTATUS(status);
  return answered;
}

TEST(SqliteFaultTest, AcknowledgedResultsSurviveAKill) {
  std::mt19937 chance(20'26);
  SqliteHarness harness;
  ASSERT_TRUE(harness.Open().ok());
  ASSERT_TRUE(harness.state().ApplyAndWait(Plan()).ok());
  harness.Close();
  int committed = 0;
  std::vector<bool> answered(kNodes, false);
  for (int round = 0; round < 12; ++round) {
    for (int i : KillAfter(harness.path(), committed, 1 + static_cast<int>(chance() % 400))) {
      answered[static_cast<size_t>(i)] = true;
    }
    ASSERT_TRUE(harness.Open().ok());  // with a quick_check
    const RunRecord run = (*harness.state().GetRun(kRun))->run;
    committed = static_cast<int>(run.genuine);
    int there = 0;
    for (int i = 0; i < kNodes; ++i) {
      const auto result = *harness.state().GetResult(KeyOf(absl::StrCat("n", i)));
      ASSERT_TRUE(result.has_value());
      if (result->outcome == Outcome::kGenuine) {
        ++there;
        ASSERT_EQ(result->body, absl::StrCat("content ", i));
      } else {
        ASSERT_FALSE(answered[static_cast<size_t>(i)]) << "lost result " << i;
      }
    }
    ASSERT_EQ(there, run.genuine);  // the counters match the rows
    ASSERT_EQ(run.pending, kNodes - there);
    // The feed has one entry for each, without a gap.
    const auto changes = harness.feed().Read(0, 10'000);
    int64_t results = 0;
    for (const ChangeRecord& change : *changes) results += change.kind == ChangeKind::kResult;
    ASSERT_EQ(results, there);
    harness.Close();
    if (committed == kNodes) break;
  }
  EXPECT_GT(committed, 0);
}

// Runs a store on a disk that fails at the n-th write or sync. Acknowledged commands must be
// present after a restart, and every command must be answered.
void RunWithFault(Fault fault, int n, bool for_good) {
  SCOPED_TRACE(absl::StrCat("fault ", static_cast<int>(fault), " at ", n));
  FaultVfs vfs;
  absl::Status fatal;
  SqliteHarness harness;
  harness.options().on_fatal = [&](const absl::Status& cause) { fatal = cause; };
  ASSERT_TRUE(harness.Open().ok());
  std::vector<PlannedPair> pairs;
  for (int i = 0; i < 20; ++i) pairs.push_back({"facts", absl::StrCat("n", i)});
  ASSERT_TRUE(harness.state().ApplyAndWait(MakeRun(kRun, pairs)).ok());
  vfs.FailAt(fault, n, for_good);
  std::vector<absl::Status> answers;
  for (int i = 0; i < 20; ++i) {
    const std::string body(5000, 'x');
    answers.push_back(
        harness.state().ApplyAndWait(Genuine(KeyOf(absl::StrCat("n", i)), body)).status());
  }
  const int syncs = vfs.syncs_after_failure();
  if (fault == Fault::kFullDisk) {
    EXPECT_TRUE(fatal.ok()) << fatal;
    for (const absl::Status& answer : answers) {
      EXPECT_TRUE(answer.ok() || ReasonOf(answer) == "DISK_FULL") << answer;
    }
    // The store continues as soon as there is space.
    vfs.Clear();
    EXPECT_TRUE(harness.state().ApplyAndWait(Genuine(KeyOf("n19"), "small")).ok());
  } else if (!fatal.ok()) {
    EXPECT_FALSE(answers.back().ok());
    EXPECT_EQ(ReasonOf(answers.back()), "STORE_FAILED");
    EXPECT_EQ(syncs, 0);
  }
  harness.Close();
  if (fault == Fault::kSyncError && !fatal.ok()) {
    EXPECT_EQ(vfs.syncs_after_failure(), 0);  // nor at its end
  }
  vfs.Clear();
  harness.options().on_fatal = nullptr;
  ASSERT_TRUE(harness.Open().ok());
  for (int i = 0; i < 19; ++i) {
    const auto result = *harness.state().GetResult(KeyOf(absl::StrCat("n", i)));
    if (answers[static_cast<size_t>(i)].ok()) {
      EXPECT_EQ(result->outcome, Outcome::kGenuine);
      EXPECT_EQ(result->body.size(), 5000u);
    }
  }
  const RunRecord run = (*harness.state().GetRun(kRun))->run;
  EXPECT_EQ(run.planned, run.pending + run.genuine);
  harness.Close();
}

TEST(SqliteFaultTest, FullDiskRefusesAndRecovers) {
  for (int n = 1; n <= 30; n += 3) RunWithFault(Fault::kFullDisk, n, false);
  for (int n = 1; n <= 10; n += 3) RunWithFault(Fault::kFullDisk, n, true);
}

// A disk without any space, until the store asks for room.
TEST(SqliteFaultTest, RoomIsMadeForTheEndOfARunOnAFullDisk) {
  FaultVfs vfs;
  int asked = 0;
  bool has_reserve = true;
  SqliteHarness harness;
  harness.options().make_room = [&] {
    ++asked;
    if (has_reserve) vfs.Clear();
    return std::exchange(has_reserve, false);
  };
  ASSERT_TRUE(harness.Open().ok());
  ASSERT_TRUE(harness.state().ApplyAndWait(MakeRun(kRun, {{"facts", "n1"}})).ok());
  vfs.FailAt(Fault::kFullDisk, 1, true);
  const absl::Status refused =
      harness.state().ApplyAndWait(Genuine(KeyOf("n1"), std::string(5000, 'x'))).status();
  EXPECT_EQ(ReasonOf(refused), "DISK_FULL");
  EXPECT_EQ(asked, 0);  // the reserve is not for data

  const auto ended = harness.state().ApplyAndWait(EndRun{.run = kRun, .state = RunState::kFailed});
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_TRUE(ended->changed);
  EXPECT_EQ(asked, 1);

  // Without a reserve the caller gets the error, and the feed has no gap.
  vfs.FailAt(Fault::kFullDisk, 1, true);
  const absl::Status full = harness.state().ApplyAndWait(DeleteRun{.run = kRun}).status();
  EXPECT_EQ(ReasonOf(full), "DISK_FULL");
  vfs.Clear();
  ASSERT_TRUE(harness.state().ApplyAndWait(DeleteRun{.run = kRun})->deleted);
  const auto changes = *harness.feed().Read(0, 100);
  for (size_t i = 0; i < changes.size(); ++i) {
    EXPECT_EQ(changes[i].sequence, static_cast<int64_t>(i) + 1);
  }
  harness.Close();
}

TEST(SqliteFaultTest, FailedWriteStopsTheStore) {
  for (int n = 1; n <= 20; n += 4) RunWithFault(Fault::kWriteError, n, false);
}

TEST(SqliteFaultTest, FailedSyncStopsTheStoreAndIsNotRepeated) {
  for (int n = 1; n <= 12; n += 2) RunWithFault(Fault::kSyncError, n, false);
}

}  // namespace
}  // namespace muster
