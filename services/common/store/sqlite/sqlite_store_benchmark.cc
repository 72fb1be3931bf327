// Measures commits of small results per second as many senders see them: each waits for its
// response before it sends the next one. Also measures the largest single commands, and the
// recovery from a crash.
//
//   bazel run --config=release //services/common/store/sqlite:sqlite_store_benchmark
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/base/file_ops.h"
#include "services/common/store/sqlite/sqlite_store.h"

namespace muster {
namespace {

constexpr char kRun[] = "00112233445566aa";

// A store in the folder $TEST_TMPDIR or in /var/tmp: on a disk, not in memory.
class Scratch {
 public:
  Scratch() {
    const char* folder = std::getenv("TEST_TMPDIR");
    path_ = absl::StrCat(folder != nullptr ? folder : "/var/tmp", "/store_XXXXXX");
    if (mkdtemp(path_.data()) == nullptr) std::abort();
    Reopen();
  }
  ~Scratch() {
    store_.reset();
    RemoveTree(PosixFileOps(), path_).IgnoreError();
  }
  void Reopen() {
    store_.reset();
    auto opened = OpenSqliteStore({.path = path_ + "/state.db"});
    if (!opened.ok()) std::abort();
    store_ = *std::move(opened);
  }
  SqliteStore& store() { return *store_; }

 private:
  std::string path_;
  std::unique_ptr<SqliteStore> store_;
};

CreateRun Plan(int64_t pairs) {
  CreateRun command;
  command.run.id = kRun;
  for (int64_t i = 0; i < pairs; ++i) {
    command.pairs.push_back({"facts", absl::StrCat("node-", i, ".example.org")});
  }
  return command;
}

CommitResult Small(int64_t number, size_t size) {
  CommitResult command;
  ResultRecord& result = command.result;
  result.key = {kRun, "facts", absl::StrCat("node-", number, ".example.org")};
  result.outcome = Outcome::kGenuine;
  result.size = static_cast<int64_t>(size);
  result.sha256 = std::string(32, 's');
  result.body = std::string(size, static_cast<char>('a' + number % 26));
  result.file_name = "facts.json";
  result.media_type = "application/json";
  result.delivery.uri = absl::StrCat("spiffe://fleet.example/node/", result.key.node);
  return command;
}

// Arguments: senders, bytes of a result.
void BM_SmallResults(benchmark::State& state) {
  const int senders = static_cast<int>(state.range(0));
  const auto size = static_cast<size_t>(state.range(1));
  const int64_t results = std::min(senders * 1000, 40'000);
  for (auto _ : state) {
    state.PauseTiming();
    Scratch scratch;
    if (!scratch.store().ApplyAndWait(Plan(results)).ok()) std::abort();
    std::atomic<int64_t> next = 0;
    std::vector<std::thread> threads;
    state.ResumeTiming();
    for (int t = 0; t < senders; ++t) {
      threads.emplace_back([&] {
        for (int64_t i; (i = next++) < results;) {
          auto result = scratch.store().ApplyAndWait(Small(i, size));
          if (!result.ok() || result->verdict != CommitResult::Verdict::kCommitted) std::abort();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    state.PauseTiming();
    const SqliteStoreStats stats = scratch.store().stats();
    state.counters["per_batch"] =
        static_cast<double>(stats.commands) / static_cast<double>(stats.batches);
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * results);
}
BENCHMARK(BM_SmallResults)
    ->Args({1, 4096})
    ->Args({64, 4096})
    ->Args({64, 65536})
    ->Args({512, 4096})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(2);

void BM_CreateRunOf100kPairs(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    Scratch scratch;
    CreateRun command = Plan(100'000);
    state.ResumeTiming();
    if (!scratch.store().ApplyAndWait(std::move(command)).ok()) std::abort();
  }
}
BENCHMARK(BM_CreateRunOf100kPairs)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(3);

void BM_TimeOutOf100kPairs(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    Scratch scratch;
    if (!scratch.store().ApplyAndWait(Plan(100'000)).ok()) std::abort();
    state.ResumeTiming();
    if (!scratch.store().ApplyAndWait(TimeOutRun{.run = kRun, .error = "late"}).ok()) std::abort();
  }
}
BENCHMARK(BM_TimeOutOf100kPairs)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(3);

// A start with 1,000,000 pairs that have outcomes.
void BM_Reopen(benchmark::State& state) {
  Scratch scratch;
  if (!scratch.store().ApplyAndWait(Plan(1'000'000)).ok()) std::abort();
  if (!scratch.store().ApplyAndWait(TimeOutRun{.run = kRun, .error = "late"}).ok()) std::abort();
  for (auto _ : state) {
    scratch.Reopen();
    if (scratch.store().LiveRuns()->size() != 1) std::abort();
  }
}
BENCHMARK(BM_Reopen)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(5);

}  // namespace
}  // namespace muster

BENCHMARK_MAIN();
