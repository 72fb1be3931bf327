// How long a run of 100,000 pairs takes to be shown, and a change to reach 1,000 watchers: a real
// status service behind a real aggregator, mutual TLS, client and server on the same processors.
#include <benchmark/benchmark.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "muster/v1/status.grpc.pb.h"
#include "services/status/testing/test_status.h"

namespace muster {
namespace {

using testing::TestFleet;
using testing::TestStatus;

constexpr int kPairs = 100'000;
constexpr int kWatchers = 1000;
constexpr int kConnections = 10;

// Lives as long as the process: to make a run of this size takes seconds.
struct Scene {
  TestFleet fleet;
  TestStatus status{fleet};
  std::string run;
  testing::TestIdentity reporter;

  Scene() {
    std::vector<std::string> nodes;
    for (int i = 0; i < kPairs; ++i) nodes.push_back(absl::StrCat("node-", i));
    run = fleet.CreateRun({"hostfacts"}, nodes).id();
    status.Await(run, [](const v1::RunStatus& s) { return s.counts().planned() == kPairs; });
    reporter = fleet.Credential(run, "hostfacts", "node-7");
  }

  static Scene& Get() {
    static auto* const scene = new Scene();
    return *scene;
  }

  std::unique_ptr<v1::StatusService::Stub> Stub() {
    return v1::StatusService::NewStub(status.Connect(fleet.admin()));
  }
};

// All pairs by GetStatus, 10,000 a page, as one client after another would.
void Pages(benchmark::State& state) {
  Scene& scene = Scene::Get();
  const auto stub = scene.Stub();
  int64_t bytes = 0;
  for (auto _ : state) {
    v1::GetStatusRequest request;
    request.set_run(scene.run);
    request.set_page_size(10'000);
    int pairs = 0;
    do {
      grpc::ClientContext context;
      v1::RunStatus page;
      if (!stub->GetStatus(&context, request, &page).ok()) return state.SkipWithError("failed");
      pairs += page.pairs_size();
      request.set_page_token(page.next_page_token());
      state.PauseTiming();
      bytes += static_cast<int64_t>(page.ByteSizeLong());
      state.ResumeTiming();
    } while (!request.page_token().empty());
    if (pairs != kPairs) return state.SkipWithError("pairs are missing");
  }
  state.SetBytesProcessed(bytes);
}
BENCHMARK(Pages)->Unit(benchmark::kMillisecond)->UseRealTime()->MinTime(3);

// The snapshot of a watch: from the call to its cursor.
void Snapshot(benchmark::State& state) {
  Scene& scene = Scene::Get();
  const auto stub = scene.Stub();
  for (auto _ : state) {
    grpc::ClientContext context;
    v1::WatchStatusRequest request;
    request.set_run(scene.run);
    const auto stream = stub->WatchStatus(&context, request);
    v1::WatchStatusResponse message;
    int pairs = 0;
    while (stream->Read(&message)) {
      pairs += message.pairs_size();
      if (!message.cursor().empty()) break;
    }
    if (pairs != kPairs) return state.SkipWithError("pairs are missing");
    state.PauseTiming();
    context.TryCancel();
    stream->Finish();
    state.ResumeTiming();
  }
}
BENCHMARK(Snapshot)->Unit(benchmark::kMillisecond)->UseRealTime()->MinTime(3);

// When each watcher learned of the change that is waited for.
class Arrivals {
 public:
  void Expect(int64_t completed) {
    std::lock_guard lock(mutex_);
    completed_ = completed;
    at_.clear();
  }

  void Saw(int64_t completed) {
    const absl::Time now = absl::Now();
    std::lock_guard lock(mutex_);
    if (completed != completed_) return;
    at_.push_back(now);
    if (at_.size() == kWatchers) all_.notify_all();
  }

  std::vector<absl::Time> Await() {
    std::unique_lock lock(mutex_);
    all_.wait_for(lock, std::chrono::seconds(30), [this] { return at_.size() == kWatchers; });
    return at_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_;
  int64_t completed_ = -1;      // guarded by mutex_
  std::vector<absl::Time> at_;  // guarded by mutex_
};

// One watcher that joins at `cursor`.
class Watcher : public grpc::ClientReadReactor<v1::WatchStatusResponse> {
 public:
  Watcher(v1::StatusService::Stub& stub, const std::string& run, const std::string& cursor,
          Arrivals& arrivals)
      : arrivals_(arrivals) {
    request_.set_run(run);
    request_.set_cursor(cursor);
    stub.async()->WatchStatus(&context_, &request_, this);
    StartRead(&message_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    for (const v1::PairStatus& pair : message_.pairs()) arrivals_.Saw(pair.progress().completed());
    StartRead(&message_);
  }

  void OnDone(const grpc::Status&) override {
    std::lock_guard lock(mutex_);
    done_ = true;
    ended_.notify_all();
  }

  void End() {
    context_.TryCancel();
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return done_; });
  }

 private:
  Arrivals& arrivals_;
  grpc::ClientContext context_;
  v1::WatchStatusRequest request_;
  v1::WatchStatusResponse message_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool done_ = false;  // guarded by mutex_
};

std::string NewestCursor(Scene& scene) {
  const auto stub = scene.Stub();
  grpc::ClientContext context;
  v1::WatchStatusRequest request;
  request.set_run(scene.run);
  const auto stream = stub->WatchStatus(&context, request);
  v1::WatchStatusResponse message;
  while (stream->Read(&message) && message.cursor().empty()) {
  }
  context.TryCancel();
  stream->Finish();
  return message.cursor();
}

// From the report of a plugin's progress to the watchers; the counters are over all of them.
void ChangeToWatchers(benchmark::State& state) {
  Scene& scene = Scene::Get();
  const std::string cursor = NewestCursor(scene);
  Arrivals arrivals;
  std::vector<std::unique_ptr<v1::StatusService::Stub>> stubs;
  for (int i = 0; i < kConnections; ++i) stubs.push_back(scene.Stub());
  std::vector<std::unique_ptr<Watcher>> watchers;
  for (int i = 0; i < kWatchers; ++i) {
    watchers.push_back(
        std::make_unique<Watcher>(*stubs[i % kConnections], scene.run, cursor, arrivals));
  }
  const auto reporter = v1::StatusService::NewStub(scene.status.Connect(scene.reporter));
  std::vector<double> millis;
  int64_t completed = absl::ToUnixMillis(absl::Now());
  for (auto _ : state) {
    state.PauseTiming();
    absl::SleepFor(absl::Milliseconds(300));  // a change to a run at rest
    v1::ReportProgressRequest report;
    report.mutable_key()->set_run(scene.run);
    report.mutable_key()->set_plugin("hostfacts");
    report.mutable_key()->set_node("node-7");
    report.set_completed(++completed % 1'000'000'000);
    arrivals.Expect(report.completed());
    state.ResumeTiming();
    const absl::Time begin = absl::Now();
    grpc::ClientContext context;
    v1::ReportProgressResponse response;
    if (!reporter->ReportProgress(&context, report, &response).ok()) {
      state.SkipWithError("the report failed");
      break;
    }
    const std::vector<absl::Time> at = arrivals.Await();
    if (at.size() != kWatchers) {
      state.SkipWithError("watchers heard nothing");
      break;
    }
    for (const absl::Time one : at) millis.push_back(absl::ToDoubleMilliseconds(one - begin));
  }
  for (const auto& watcher : watchers) watcher->End();
  std::sort(millis.begin(), millis.end());
  if (millis.empty()) return;
  state.counters["p50_ms"] = millis[millis.size() / 2];
  state.counters["p99_ms"] = millis[millis.size() * 99 / 100];
  state.counters["max_ms"] = millis.back();
}
BENCHMARK(ChangeToWatchers)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(20);

}  // namespace
}  // namespace muster

BENCHMARK_MAIN();
