// A node's jobs with real processes and a real disk; the test plays the root relay.
#ifndef MUSTER_SERVICES_AGENT_JOBS_TESTING_JOB_RUNNER_FIXTURE_H_
#define MUSTER_SERVICES_AGENT_JOBS_TESTING_JOB_RUNNER_FIXTURE_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/agent/jobs/job_runner.h"
#include "services/agent/jobs/testing/memory_contents.h"
#include "services/common/base/executor.h"
#include "services/common/base/mutex.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/timers.h"
#include "testing/fixtures/test_commands.h"

namespace muster {

inline constexpr char kNode[] = "n1";
inline constexpr char kAnything[] = "commands: [{argv: ['**']}]";

// The records of a job that the root relay has.
struct JobAtRoot {
  std::string out;
  std::string err;
  int64_t cut = 0;
  int cuts = 0;
  int started = 0;
  std::optional<v1::JobRecord::Outputs> outputs;
  std::optional<v1::JobRecord::Final> final;
};

class JobRunnerFixture : public ::testing::Test {
 protected:
  JobRunnerFixture() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    SetPolicy(kAnything);
    Begin();
  }
  ~JobRunnerFixture() override { End(); }

  void SetPolicy(std::string_view text) {
    ASSERT_TRUE(WriteFileAtomically(folder_ + "/policy.yaml", text).ok());
  }

  // Starts an agent, which is attached all the time.
  void Begin() {
    JobRunnerOptions options{
        .trust = {folder_, kTestFleet, kNode, commands_.authority().certificate()},
        .timers = timers_.get(),
        .executor = &executor_,
        .contents = &contents_};
    options.sign = sign_;
    options.max_parallel = max_parallel_;
    options.max_remembered = max_remembered_;
    options.max_cancelled = max_cancelled_;
    options.max_spool = max_spool_;
    options.docker_socket = docker_socket_;
    options.first_sweep = first_sweep_;
    options.sweep_every = sweep_every_;
    auto opened = JobRunner::Open(std::move(options), [this] {
      MutexLock lock(mutex_);
      news_ = true;
      wake_.NotifyAll();
    });
    ASSERT_TRUE(opened.ok()) << opened.status();
    runner_ = *std::move(opened);
    {
      MutexLock lock(mutex_);
      stop_ = false;
      news_ = true;  // a new attachment requests all records
    }
    root_ = std::thread([this] { PlayRoot(); });
  }

  void End() {
    {
      MutexLock lock(mutex_);
      stop_ = true;
      wake_.NotifyAll();
    }
    if (root_.joinable()) root_.join();
    runner_.reset();
  }

  void PlayRoot() {
    MutexLock lock(mutex_);
    for (;;) {
      while (!news_ && !stop_) wake_.Wait(mutex_);
      if (stop_) return;
      news_ = false;
      lock.Unlock();
      v1::JobRecords records;
      while (runner_->NextRecords(&records)) {
        EXPECT_LE(records.ByteSizeLong(), 256 * 1024);
        Store(records);
        records.Clear();
      }
      lock.Lock();
    }
  }

  void Store(const v1::JobRecords& records) {
    v1::RecordsAck ack;
    {
      MutexLock lock(mutex_);
      for (const v1::JobRecord& record : records.records()) {
        EXPECT_EQ(record.node(), kNode);
        int64_t& reached = reached_[record.job()];
        if (record.sequence() > reached) {  // otherwise it is a repeated one
          EXPECT_EQ(record.sequence(), reached + 1);
          reached = record.sequence();
          StoreOne(record, received_[record.job()]);
        }
        auto& received = *ack.add_reached();
        received.set_job(record.job());
        received.set_node(kNode);
        received.set_sequence(reached);
      }
      stored_.NotifyAll();
    }
    if (acks_) runner_->HandleAcks(ack);
  }

  static void StoreOne(const v1::JobRecord& record, JobAtRoot& received) {
    EXPECT_FALSE(received.final) << "a record after the final one";
    if (record.has_started()) ++received.started;
    if (record.has_output()) {
      EXPECT_LE(record.output().data().size(), 32 * 1024);
      (record.output().stream() == v1::JOB_STREAM_STDERR ? received.err : received.out) +=
          record.output().data();
    }
    if (record.has_cut()) {
      received.cut += record.cut().bytes();
      ++received.cuts;
    }
    if (record.has_outputs()) received.outputs = record.outputs();
    if (record.has_final()) received.final = record.final();
  }

  // Waits until the root relay has enough records of the job.
  JobAtRoot AwaitRecords(const std::string& job,
                         const std::function<bool(const JobAtRoot&)>& enough) {
    MutexLock lock(mutex_);
    EXPECT_TRUE(stored_.WaitFor(
        mutex_, absl::Minutes(1),
        [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return enough(received_[job]); }));
    return received_[job];
  }
  JobAtRoot AwaitFinal(const std::string& job) {
    JobAtRoot received = AwaitRecords(job, [](const JobAtRoot& t) { return t.final.has_value(); });
    if (!received.final) received.final.emplace();
    return received;
  }

  // The root relay loses the records of the job.
  void Forget(const std::string& job) {
    MutexLock lock(mutex_);
    reached_.erase(job);
    received_.erase(job);
  }

  JobAtRoot Run(const v1::Command& command) {
    runner_->Receive(commands_.ForNode(command, kNode));
    return AwaitFinal(command.job());
  }
  JobAtRoot Shell(const std::string& script) {
    return Run(TestCommands::Exec({"/bin/sh", "-c", script}));
  }

  void ExpectRefused(const v1::JobCommand& sent, const std::string& reason,
                     v1::JobOutcome outcome = v1::JOB_OUTCOME_REFUSED) {
    runner_->Receive(sent);
    const JobAtRoot received = AwaitFinal(sent.job());
    EXPECT_EQ(received.final->outcome(), outcome);
    EXPECT_EQ(received.final->reason(), reason) << received.final->detail();
    EXPECT_EQ(received.started, 0);
  }

  const std::string folder_ = ::testing::TempDir() + "/node";
  size_t max_parallel_ = 16;
  size_t max_remembered_ = 10'000;
  size_t max_cancelled_ = 5'000;
  int64_t max_spool_ = int64_t{1} << 30;
  std::string docker_socket_ = "/none";
  absl::Duration first_sweep_ = absl::Minutes(1);
  absl::Duration sweep_every_ = absl::Minutes(10);
  FinalSigner sign_;
  TestCommands commands_;
  const std::unique_ptr<TimerService> timers_ = MakeTimerService(100);
  Executor executor_{{"test", 1}};
  testing::MemoryContents contents_;
  std::unique_ptr<JobRunner> runner_;
  std::thread root_;
  Mutex mutex_;
  CondVar wake_;
  CondVar stored_;
  bool news_ ABSL_GUARDED_BY(mutex_) = true;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> acks_ = true;
  std::map<std::string, int64_t> reached_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, JobAtRoot> received_ ABSL_GUARDED_BY(mutex_);
};

// Returns whether the process has exited.
inline bool HasEnded(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  const std::string stat((std::istreambuf_iterator<char>(file)), {});
  return stat.empty() || stat.find(") Z") != std::string::npos;
}

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_TESTING_JOB_RUNNER_FIXTURE_H_
