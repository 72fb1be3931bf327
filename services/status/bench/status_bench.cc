// How long a run of 100,000 pairs takes to be shown, and a change to reach 1,000 watchers: the
// board and its gRPC service over mutual TLS, client and server on the same processors.
#include <benchmark/benchmark.h>
#include <google/protobuf/arena.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "muster/v1/status.grpc.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/base/metrics.h"
#include "services/common/base/mutex.h"
#include "services/common/base/timers.h"
#include "services/common/identity/bootstrap.h"
#include "services/common/identity/certificate_files.h"
#include "services/common/identity/context.h"
#include "services/common/identity/home.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/process.h"
#include "services/common/rpc/server.h"
#include "services/status/board/board.h"
#include "services/status/status_service.h"

namespace muster {
namespace {

constexpr int kPairs = 100'000;
constexpr int kWatchers = 1000;
constexpr int kConnections = 10;
constexpr char kRun[] = "0123456789abcdef";

// A separate fleet, in a folder that is removed with the process.
struct Identities {
  Home home{std::filesystem::temp_directory_path() / absl::StrCat("status-bench-", getpid())};
  std::string fleet;
  std::unique_ptr<CertificateFiles> tls;
  ChannelIdentity client;

  Identities() {
    RequireTls13();
    BootstrapOptions options;
    options.operator_name = "bench";
    fleet = Bootstrap(home, options, absl::Now()).value().fleet;
    const std::string folder = home.ServiceFolder(ServiceRole::kStatus);
    tls = *CertificateFiles::Open(folder + "/tls", folder + "/tls-published", ServiceRole::kStatus,
                                  absl::Now());
    const OperatorContext context = ReadContext(home.ContextFile()).value();
    client = {fleet, context.fleet_ca_pem, context.certificate_chain_pem,
              std::string(context.private_key_pem.view())};
  }
  ~Identities() {
    std::error_code ignored;
    std::filesystem::remove_all(home.path(), ignored);
  }
};

v1::ResultKey Key(int node) {
  v1::ResultKey key;
  key.set_run(kRun);
  key.set_plugin("hostfacts");
  key.set_node(absl::StrCat("node-", node));
  return key;
}

// Makes the event that of one pair.
v1::FollowChangesResponse::PairChanged* AddPair(int node, v1::FollowChangesResponse& event) {
  const v1::ResultKey key = Key(node);
  event.mutable_pairs()->Clear();
  event.mutable_pairs()->set_run(key.run());
  event.mutable_pairs()->set_plugin(key.plugin());
  auto* pair = event.mutable_pairs()->add_pairs();
  pair->set_node(key.node());
  return pair;
}

// The parts of a status service that answer, with a run of 100,000 pairs of which a tenth is
// through.
struct Scene {
  Identities identities;
  const Clock& clock = SystemClock();
  std::unique_ptr<TimerService> timers = MakeTimerService(100);
  Executor requests{{"request", 4, 16'384}};
  Executor streams{{"watch", 2, 16'384}};
  Metrics metrics;
  RpcMetrics rpc_metrics{metrics};
  CallerResolver callers{identities.fleet, clock};
  CallCanceller canceller;
  WatchHub hub{*timers, clock};
  VerdictLog verdicts;
  Board board{{&clock, &hub, &verdicts, [] { return std::string(); },
               [] { return std::vector<const RelayState*>(); },
               [](const std::string&, const v1::NodeEvent&) {}, [](const std::string&) {},
               [](const std::set<std::string>&) {}, [](const std::shared_ptr<const Sender>&) {},
               [](const std::string&, const EndedRuns::Add&, const EndedRuns::Done&) {},
               [](const std::string&) {}}};
  StatusService service{{&callers, &requests, &canceller, &rpc_metrics},
                        {&callers, &streams, &canceller, &rpc_metrics},
                        board,
                        hub,
                        [](const std::string&) { return std::vector<v1::NodeEvent>(); },
                        clock};
  std::unique_ptr<RpcServer> server;

  Scene() {
    Plan();
    RpcServerOptions options;
    options.listen = "127.0.0.1:0";
    options.health_listen = "127.0.0.1:0";
    options.certificate_folder = identities.tls->published_folder();
    options.is_revoked = [](const Caller&) { return false; };
    server = *RpcServer::Start(std::move(options), callers, canceller, rpc_metrics, {&service});
  }

  void Plan() {
    v1::FollowChangesResponse event;
    event.mutable_snapshot_begin();
    board.Apply(event);
    event.mutable_run()->set_id(kRun);
    event.mutable_run()->set_state(v1::RUN_STATE_RUNNING);
    *event.mutable_run()->mutable_create_time() = ToTimestamp(clock.Now());
    *event.mutable_run()->mutable_deadline() = ToTimestamp(clock.Now() + absl::Hours(1));
    event.mutable_run()->add_plugins()->set_name("hostfacts");
    board.Apply(event);
    for (int i = 0; i < kPairs; ++i) {
      auto* pair = AddPair(i, event);
      pair->set_outcome(i % 10 == 0 ? v1::OUTCOME_GENUINE : v1::OUTCOME_PENDING);
      pair->set_generation(i % 10 == 0 ? 1 : 0);
      board.Apply(event);
    }
    event.mutable_snapshot_end();
    board.Apply(event);
    v1::ReportProgressRequest report;
    for (int i = 0; i < kPairs; i += 2) {
      *report.mutable_key() = Key(i);
      report.set_total(100);
      report.set_completed(i % 100);
      board.Report(report).IgnoreError();
    }
  }

  static Scene& Get() {
    static Scene scene;
    return scene;
  }

  std::unique_ptr<v1::StatusService::Stub> Stub() {
    return v1::StatusService::NewStub(
        MakeChannel(absl::StrCat("127.0.0.1:", server->port()),
                    MakeChannelCredentials(identities.client, {ServiceRole::kStatus}),
                    /*own_connection=*/true));
  }
};

// All pairs by GetStatus, 10,000 a page, as one client after another would.
void Pages(benchmark::State& state) {
  Scene& scene = Scene::Get();
  const auto stub = scene.Stub();
  for (auto _ : state) {
    v1::GetStatusRequest request;
    request.set_run(kRun);
    request.set_page_size(10'000);
    int pairs = 0;
    do {
      grpc::ClientContext context;
      google::protobuf::Arena arena;
      auto* page = google::protobuf::Arena::CreateMessage<v1::RunStatus>(&arena);
      if (!stub->GetStatus(&context, request, page).ok()) return state.SkipWithError("failed");
      pairs += page->pairs_size();
      request.set_page_token(page->next_page_token());
    } while (!request.page_token().empty());
    if (pairs != kPairs) return state.SkipWithError("pairs are missing");
  }
}
BENCHMARK(Pages)->Unit(benchmark::kMillisecond)->UseRealTime()->MeasureProcessCPUTime()->MinTime(3);

// The snapshot of a watch: from the call to its cursor.
void Snapshot(benchmark::State& state) {
  Scene& scene = Scene::Get();
  const auto stub = scene.Stub();
  for (auto _ : state) {
    grpc::ClientContext context;
    v1::WatchStatusRequest request;
    request.set_run(kRun);
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
BENCHMARK(Snapshot)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime()
    ->MinTime(3);

// When each watcher learned of the change that is waited for.
class Arrivals {
 public:
  void Expect(int64_t completed) {
    MutexLock lock(mutex_);
    completed_ = completed;
    at_.clear();
  }

  void Saw(int64_t completed) {
    const absl::Time now = absl::Now();
    MutexLock lock(mutex_);
    if (completed != completed_) return;
    at_.push_back(now);
    if (at_.size() == kWatchers) all_.NotifyAll();
  }

  std::vector<absl::Time> Await() {
    MutexLock lock(mutex_);
    all_.WaitFor(mutex_, absl::Seconds(30), [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return at_.size() == kWatchers;
    });
    return at_;
  }

 private:
  Mutex mutex_;
  CondVar all_;
  int64_t completed_ ABSL_GUARDED_BY(mutex_) = -1;
  std::vector<absl::Time> at_ ABSL_GUARDED_BY(mutex_);
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
    MutexLock lock(mutex_);
    done_ = true;
    ended_.NotifyAll();
  }

  void End() {
    context_.TryCancel();
    MutexLock lock(mutex_);
    while (!done_) ended_.Wait(mutex_);
  }

 private:
  Arrivals& arrivals_;
  grpc::ClientContext context_;
  v1::WatchStatusRequest request_;
  v1::WatchStatusResponse message_;
  Mutex mutex_;
  CondVar ended_;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
};

std::string NewestCursor(Scene& scene) {
  const auto stub = scene.Stub();
  grpc::ClientContext context;
  v1::WatchStatusRequest request;
  request.set_run(kRun);
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
    watchers.push_back(std::make_unique<Watcher>(*stubs[i % kConnections], kRun, cursor, arrivals));
  }
  std::vector<double> millis;
  int64_t completed = absl::ToUnixMillis(absl::Now());
  for (auto _ : state) {
    state.PauseTiming();
    absl::SleepFor(absl::Milliseconds(300));  // a change to a run at rest
    v1::ReportProgressRequest report;
    *report.mutable_key() = Key(7);
    report.set_completed(++completed % 1'000'000'000);
    arrivals.Expect(report.completed());
    state.ResumeTiming();
    const absl::Time begin = absl::Now();
    scene.board.Report(report).IgnoreError();
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
BENCHMARK(ChangeToWatchers)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime()
    ->Iterations(20);

// A tick of a board while the senders of all pairs of a run are silent, and a verdict stands for
// each pair.
void TickOfSilentRun(benchmark::State& state) {
  const Clock& clock = SystemClock();
  const std::unique_ptr<TimerService> timers = MakeTimerService(100);
  WatchHub hub(*timers, clock);
  VerdictLog verdicts;
  Board board({&clock, &hub, &verdicts, [] { return std::string(); },
               [] { return std::vector<const RelayState*>(); },
               [](const std::string&, const v1::NodeEvent&) {}, [](const std::string&) {},
               [](const std::set<std::string>&) {}, [](const std::shared_ptr<const Sender>&) {},
               [](const std::string&, const EndedRuns::Add&, const EndedRuns::Done&) {},
               [](const std::string&) {}});
  v1::FollowChangesResponse event;
  event.mutable_snapshot_begin();
  board.Apply(event);
  event.mutable_run()->set_id(kRun);
  event.mutable_run()->set_state(v1::RUN_STATE_RUNNING);
  event.mutable_run()->mutable_lost_after()->set_seconds(180);
  event.mutable_run()->add_plugins()->set_name("hostfacts");
  board.Apply(event);
  for (int i = 0; i < kPairs; ++i) {
    AddPair(i, event)->set_outcome(v1::OUTCOME_PENDING);
    board.Apply(event);
  }
  event.mutable_snapshot_end();
  board.Apply(event);
  const absl::Duration silent_since = clock.MonotonicNow() - absl::Hours(1);
  for (int i = 0; i < kPairs; ++i) {
    v1::Activity activity;
    *activity.mutable_key() = Key(i);
    const auto sender = std::make_shared<Sender>("spiffe://bench/node", activity.key().node());
    sender->set_last_seen(silent_since);
    sender->set_evidence(Evidence::kUnacknowledged);
    sender->set_presence(v1::PRESENCE_LOST, silent_since);
    board.HandleActivity(activity.key(), sender, activity).IgnoreError();
  }
  board.Tick();
  if (verdicts.standing() != kPairs) return state.SkipWithError("verdicts are missing");
  for (auto _ : state) board.Tick();
}
BENCHMARK(TickOfSilentRun)->Unit(benchmark::kMicrosecond)->MinTime(1);

}  // namespace
}  // namespace muster

BENCHMARK_MAIN();
