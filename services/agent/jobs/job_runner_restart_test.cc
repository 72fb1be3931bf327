// A node does not run a command twice, nor after its cancel, whenever its agent restarts.
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "services/agent/jobs/job_folder.h"
#include "services/agent/jobs/testing/job_runner_fixture.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/subprocess.h"
#include "services/common/base/unique_fd.h"
#include "services/common/jobs/final_record.h"
#include "services/common/journal/journal_reader.h"
#include "services/common/rpc/proto_time.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

class JobRunnerRestartTest : public JobRunnerFixture {};

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns whether an agent has recorded in this journal that its command has started.
bool HasRecordedStart(const std::string& records) {
  const auto info = PosixFileOps().Stat(records);
  const auto reader = JournalReader::Open(PosixFileOps(), records);
  if (!info.ok() || !reader.ok()) return false;
  std::string_view bytes;
  v1::JobRecord record;
  while ((*reader)->Next(info->size, &bytes).value_or(false)) {
    if (record.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) && record.has_started())
      return true;
  }
  return false;
}

// An agent in a separate process, for a test that kills it.
constexpr char kAgentVariable[] = "MUSTER_TEST_AGENT";
TEST(KilledAgent, RunsUntilItIsKilled) {
  const char* folder = std::getenv(kAgentVariable);
  if (folder == nullptr) GTEST_SKIP() << "started by another test";
  v1::JobCommand sent;
  ASSERT_TRUE(sent.ParseFromString(Contents(std::string(folder) + "/sent")));
  const Certificate ca = Certificate::FromPem(Contents(std::string(folder) + "/ca.pem")).value();
  const auto timers = MakeTimerService(100);
  Executor executor({"test", 1});
  auto runner = JobRunner::Open(
      {.trust = {folder, kTestFleet, kNode, ca}, .timers = timers.get(), .executor = &executor},
      [] {});
  ASSERT_TRUE(runner.ok()) << runner.status();
  (*runner)->Receive(sent);
  for (;;) pause();
}

TEST_F(JobRunnerRestartTest, RefusedCommandDoesNotRunLater) {
  SetPolicy("");
  const v1::JobCommand sent = commands_.ForNode(TestCommands::Exec({"/bin/true"}), kNode);
  ExpectRefused(sent, "POLICY_REFUSED");
  ASSERT_TRUE(runner_->AwaitAcked(absl::Minutes(1)));
  SetPolicy(kAnything);
  runner_->Receive(sent);
  End();
  Begin();
  runner_->Receive(sent);
  EXPECT_EQ(Shell("exit 0").final->exit_code(), 0);
  EXPECT_EQ(AwaitFinal(sent.job()).started, 0);
}

TEST_F(JobRunnerRestartTest, CommandThatCouldNotBeStoredDoesNotRunLater) {
  const v1::JobCommand sent = commands_.ForNode(TestCommands::Exec({"/bin/true"}), kNode);
  const std::string in_the_way = folder_ + "/jobs/" + sent.job();
  ASSERT_TRUE(WriteFileAtomically(in_the_way, "").ok());
  runner_->Receive(sent);
  EXPECT_EQ(AwaitFinal(sent.job()).final->outcome(), v1::JOB_OUTCOME_FAILED);
  ASSERT_TRUE(runner_->AwaitAcked(absl::Minutes(1)));
  std::filesystem::remove(in_the_way);
  runner_->Receive(sent);
  End();
  Begin();
  runner_->Receive(sent);
  EXPECT_EQ(Shell("exit 0").final->exit_code(), 0);
  EXPECT_EQ(AwaitFinal(sent.job()).started, 0);
}

// Neither the folder of the job nor the list of cancelled jobs can be stored, as on a full disk.
TEST_F(JobRunnerRestartTest, FailureIsReportedWhenTheCommandCannotRunLater) {
  End();
  const v1::JobCommand sent = commands_.ForNode(TestCommands::Exec({"/bin/true"}), kNode);
  const std::string in_the_way = folder_ + "/jobs/" + sent.job();
  ASSERT_TRUE(WriteFileAtomically(in_the_way, "").ok());
  std::filesystem::remove(folder_ + "/cancelled-jobs");
  std::filesystem::create_directory(folder_ + "/cancelled-jobs.new");
  Begin();
  runner_->Receive(sent);
  EXPECT_EQ(Shell("exit 0").final->exit_code(), 0);
  {
    MutexLock lock(mutex_);
    EXPECT_FALSE(received_[sent.job()].final) << "a restart would run a copy of the command";
  }
  std::filesystem::remove(folder_ + "/cancelled-jobs.new");
  const v1::JobRecord::Final final = *AwaitFinal(sent.job()).final;
  EXPECT_EQ(final.outcome(), v1::JOB_OUTCOME_FAILED);
  ASSERT_TRUE(runner_->AwaitAcked(absl::Minutes(1)));
  std::filesystem::remove(in_the_way);
  Forget(sent.job());
  ExpectRefused(sent, final.reason(), v1::JOB_OUTCOME_FAILED);
  ASSERT_TRUE(runner_->AwaitAcked(absl::Minutes(1)));
  End();
  Begin();
  runner_->Receive(sent);
  EXPECT_EQ(Shell("exit 0").final->exit_code(), 0);
  EXPECT_EQ(AwaitFinal(sent.job()).started, 0);
}

// A finished job of an earlier process, whose command expired at `not_after`.
void StoreFinishedJob(TestCommands& commands, const std::string& folder, absl::Time not_after,
                      absl::Duration time_limit = absl::Minutes(1)) {
  v1::Command command = TestCommands::Exec({"/bin/true"});
  ToProto(time_limit, command.mutable_time_limit());
  ToProto(not_after - absl::Hours(1), command.mutable_not_before());
  ToProto(not_after, command.mutable_not_after());
  auto job = NodeJobFolder::Create(PosixFileOps(), folder + "/jobs", command.job(), kNode,
                                   commands.Sign(command));
  ASSERT_TRUE(job.ok()) << job.status();
  ASSERT_TRUE((*job)->SetDone().ok());
}

TEST_F(JobRunnerRestartTest, ExpiredJobsGiveWayToNewOnesAtTheLimit) {
  End();
  StoreFinishedJob(commands_, folder_, absl::Now() - absl::Hours(2));
  StoreFinishedJob(commands_, folder_, absl::Now());
  max_remembered_ = 2;
  Begin();
  EXPECT_EQ(Shell("exit 0").final->outcome(), v1::JOB_OUTCOME_EXITED);
  EXPECT_EQ(Shell("exit 0").final->reason(), "TOO_MANY_JOBS");
}

TEST_F(JobRunnerRestartTest, JobForWhoseOutcomeTheRootRelayMayWaitStays) {
  End();
  StoreFinishedJob(commands_, folder_, absl::Now() - absl::Hours(27), absl::Hours(48));
  max_remembered_ = 1;
  Begin();
  EXPECT_EQ(Shell("exit 0").final->reason(), "TOO_MANY_JOBS");
}

TEST_F(JobRunnerRestartTest, RepeatedCommandRunsOnce) {
  const std::string marks = folder_ + "/marks";
  const v1::JobCommand sent =
      commands_.ForNode(TestCommands::Exec({"/bin/sh", "-c", "echo x >> " + marks}), kNode);
  acks_ = false;
  for (int i = 0; i < 3; ++i) runner_->Receive(sent);
  AwaitFinal(sent.job());
  runner_->Receive(sent);
  End();
  Begin();
  runner_->Receive(sent);  // not acked: sent again by the next process
  acks_ = true;
  runner_->Rewind();
  ASSERT_TRUE(runner_->AwaitAcked(absl::Minutes(1)));
  ASSERT_TRUE(testing::Await(
      [&] { return !std::filesystem::exists(folder_ + "/jobs/" + sent.job() + "/records"); }));
  runner_->Receive(sent);
  End();
  Begin();
  runner_->Receive(sent);
  EXPECT_EQ(Shell("cat " + marks).out, "x\n");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/jobs/" + sent.job() + "/records"));
}

TEST_F(JobRunnerRestartTest, ReplayOfACommandThatHasRunIsLost) {
  const v1::JobCommand sent = commands_.ForNode(TestCommands::Exec({"/bin/true"}), kNode);
  runner_->Receive(sent);
  EXPECT_EQ(AwaitFinal(sent.job()).started, 1);
  ASSERT_TRUE(testing::Await(
      [&] { return !std::filesystem::exists(folder_ + "/jobs/" + sent.job() + "/records"); }));
  Forget(sent.job());
  ExpectRefused(sent, "REPLAYED", v1::JOB_OUTCOME_LOST);
}

TEST_F(JobRunnerRestartTest, CommandThatArrivesAfterItsCancelDoesNotRunAlsoAfterARestart) {
  const std::string marks = folder_ + "/marks";
  const v1::JobCommand sent =
      commands_.ForNode(TestCommands::Exec({"/bin/sh", "-c", "echo x >> " + marks}), kNode);
  v1::JobCancel cancel;
  cancel.set_job(sent.job());
  runner_->Cancel(cancel);
  EXPECT_EQ(AwaitFinal(sent.job()).final->outcome(), v1::JOB_OUTCOME_CANCELLED);
  for (int restarts = 0; restarts < 2; ++restarts) {
    runner_->Receive(sent);
    // One that follows has run.
    EXPECT_EQ(Shell("exit 0").final->exit_code(), 0);
    EXPECT_FALSE(std::filesystem::exists(marks));
    End();
    Begin();
  }
}

TEST_F(JobRunnerRestartTest, CommandOfAKilledAgentIsEndedAndLostAfterTheRestart) {
  End();
  const v1::Command command =
      TestCommands::Exec({"/bin/sh", "-c",
                          "sleep 1000 & echo $! > " + folder_ + "/pid.part; mv " + folder_ +
                              "/pid.part " + folder_ + "/pid; wait"});
  const v1::JobCommand sent = commands_.ForNode(command, kNode);
  std::ofstream(folder_ + "/sent") << sent.SerializeAsString();
  std::ofstream(folder_ + "/ca.pem") << commands_.authority().certificate().ToPem();
  auto agent = Subprocess::Start({.argv = {"/proc/self/exe", "--gtest_filter=KilledAgent.*"},
                                  .environment = {absl::StrCat(kAgentVariable, "=", folder_)}});
  ASSERT_TRUE(agent.ok()) << agent.status();
  ASSERT_TRUE(testing::Await([&] { return std::filesystem::exists(folder_ + "/pid"); }));
  // The command runs before its start is recorded.
  ASSERT_TRUE(testing::Await([&] {
    return HasRecordedStart(absl::StrCat(folder_, "/jobs/", command.job(), "/records"));
  }));
  pid_t helper = 0;
  std::ifstream(folder_ + "/pid") >> helper;
  (*agent)->Signal(SIGKILL);
  (*agent)->Wait(absl::Minutes(1));
  EXPECT_FALSE(HasEnded(helper));
  Begin();
  EXPECT_TRUE(testing::Await([&] { return HasEnded(helper); }));
  const JobAtRoot received = AwaitFinal(command.job());
  EXPECT_EQ(received.final->outcome(), v1::JOB_OUTCOME_LOST);
  EXPECT_EQ(received.final->reason(), "AGENT_DIED");
  runner_->Receive(sent);
  EXPECT_EQ(AwaitFinal(command.job()).started, 1);
}

TEST_F(JobRunnerRestartTest, DamagedJobDoesNotStopTheAgentAndIsNotRunAgain) {
  const std::string marks = folder_ + "/marks";
  const v1::JobCommand sent =
      commands_.ForNode(TestCommands::Exec({"/bin/sh", "-c", "echo x >> " + marks}), kNode);
  runner_->Receive(sent);
  AwaitFinal(sent.job());
  End();
  std::fstream(folder_ + "/jobs/" + sent.job() + "/job", std::ios::in | std::ios::out)
      .seekp(100)
      .put('#');
  Begin();
  Forget(sent.job());
  ExpectRefused(sent, "RECORDS_DAMAGED", v1::JOB_OUTCOME_LOST);
  EXPECT_EQ(Shell("cat " + marks).out, "x\n");
}

// As on a full disk, or without free descriptors.
TEST_F(JobRunnerRestartTest, JobThatCannotBeReadForNowIsReportedLater) {
  acks_ = false;
  const v1::JobCommand sent = commands_.ForNode(TestCommands::Exec({"/bin/echo", "hi"}), kNode);
  runner_->Receive(sent);
  AwaitFinal(sent.job());
  End();
  Forget(sent.job());
  const std::string path = folder_ + "/jobs/" + sent.job() + "/job";
  std::filesystem::rename(path, folder_ + "/saved");
  std::filesystem::create_symlink("job", path);  // each attempt to open it fails
  acks_ = true;
  Begin();
  runner_->Receive(sent);
  v1::JobCancel cancel;
  cancel.set_job(sent.job());
  runner_->Cancel(cancel);
  EXPECT_EQ(Shell("exit 0").final->exit_code(), 0);
  ASSERT_TRUE(runner_->AwaitAcked(absl::Minutes(1)));
  {
    MutexLock lock(mutex_);
    EXPECT_FALSE(received_[sent.job()].final);
  }
  std::filesystem::rename(folder_ + "/saved", path);
  const JobAtRoot received = AwaitFinal(sent.job());
  EXPECT_EQ(received.final->outcome(), v1::JOB_OUTCOME_EXITED);
  EXPECT_EQ(received.out, "hi\n");
}

// Docker does not answer, and the root relay has not acked the jobs.
TEST_F(JobRunnerRestartTest, EndedJobsWithContainersDelayNoCommand) {
  End();
  acks_ = false;
  std::string socket_folder = "/tmp/docker-XXXXXX";  // the path of a socket has 107 bytes
  ASSERT_NE(mkdtemp(socket_folder.data()), nullptr);
  docker_socket_ = socket_folder + "/socket";
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  ASSERT_LT(docker_socket_.size(), sizeof(address.sun_path));
  docker_socket_.copy(address.sun_path, docker_socket_.size());
  const UniqueFd silent(socket(AF_UNIX, SOCK_STREAM, 0));
  ASSERT_EQ(bind(silent.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(silent.get(), 100), 0);
  for (int i = 0; i < 20; ++i) {
    const v1::Command command = TestCommands::Exec({"/bin/true"});
    const auto job = NodeJobFolder::Create(PosixFileOps(), folder_ + "/jobs", command.job(), kNode,
                                           commands_.Sign(command));
    ASSERT_TRUE(job.ok()) << job.status();
    JobPlan plan;
    plan.image = "i";
    ASSERT_TRUE((*job)->NoteContainer({"boot", absl::Now(), absl::ZeroDuration(), plan}).ok());
    ASSERT_TRUE((*job)->log()->Append(FinalRecord(v1::JOB_OUTCOME_EXITED, "", "")).ok());
  }
  Begin();
  EXPECT_EQ(Shell("exit 0").final->outcome(), v1::JOB_OUTCOME_EXITED);
  std::filesystem::remove_all(socket_folder);
}

TEST_F(JobRunnerRestartTest, JobWithDamagedRecordsIsLost) {
  acks_ = false;
  const std::string go_on = folder_ + "/go-on";
  const v1::JobCommand sent = commands_.ForNode(
      TestCommands::Exec({"/bin/sh", "-c", "until test -e " + go_on + "; do sleep 0.01; done"}),
      kNode);
  runner_->Receive(sent);
  AwaitRecords(sent.job(), [](const JobAtRoot& received) { return received.started > 0; });
  std::ofstream(go_on) << "";
  ASSERT_EQ(AwaitFinal(sent.job()).final->outcome(), v1::JOB_OUTCOME_EXITED);
  End();
  // In the first record; the next proves that it was synced.
  std::fstream(folder_ + "/jobs/" + sent.job() + "/records", std::ios::in | std::ios::out)
      .seekp(45)
      .put('#');
  Forget(sent.job());
  acks_ = true;
  Begin();
  const JobAtRoot received = AwaitFinal(sent.job());
  EXPECT_EQ(received.final->outcome(), v1::JOB_OUTCOME_LOST);
  EXPECT_EQ(received.final->reason(), "RECORDS_DAMAGED");
}

}  // namespace
}  // namespace muster
