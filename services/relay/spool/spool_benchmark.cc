// Accepts small results as nodes send them: each node waits for the acknowledgement of a result
// before it sends the next one. Then delivers them all.
//
//   bazel run --config=release //services/relay/spool:spool_benchmark
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/base/clock.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/metrics.h"
#include "services/common/base/sha256.h"
#include "services/relay/testing/spool_fixture.h"

namespace muster {
namespace {

constexpr int kDiskThreads = 4;
constexpr int kResultsOfNode = 60;

// A spool in the folder named by $TEST_TMPDIR or in /var/tmp: on a disk, not in memory.
class Scratch {
 public:
  explicit Scratch(const testing::Signers& signers) : disk_({"disk", kDiskThreads, 65'536}) {
    const char* folder = std::getenv("TEST_TMPDIR");
    path_ = absl::StrCat(folder != nullptr ? folder : "/var/tmp", "/spool_XXXXXX");
    if (mkdtemp(path_.data()) == nullptr) std::abort();
    SpoolOptions options;
    options.folder = path_ + "/spool";
    options.max_entries = 1'000'000;
    options.relay = "r1";
    options.fleet = testing::kFleet;
    options.fleet_ca_pem = signers.root_pem();
    auto opened = Spool::Open(options, disk_, SystemClock(), metrics_);
    if (!opened.ok()) std::abort();
    spool_ = *std::move(opened);
  }
  ~Scratch() {
    disk_.Drain(absl::Seconds(60)).IgnoreError();
    spool_.reset();
    RemoveTree(PosixFileOps(), path_).IgnoreError();
  }
  Spool& spool() { return *spool_; }

 private:
  std::string path_;
  Executor disk_;
  Metrics metrics_;
  std::unique_ptr<Spool> spool_;
};

// One result: open, chunk and finish.
void Deliver(Spool& spool, const std::string& node, int attempt, const std::string& body,
             const UploadFinish& finish) {
  const UploadPeer peer = testing::SpoolFixture::Peer(node);
  std::promise<absl::StatusOr<v1::OpenUploadResponse>> opening;
  spool.OpenUpload(testing::SpoolFixture::Request(node, "facts", body, attempt), peer,
                   [&](auto opened) { opening.set_value(std::move(opened)); });
  const auto opened = opening.get_future().get();
  if (!opened.ok()) std::abort();
  const auto session = *spool.Find(opened->upload_id(), node);
  std::promise<bool> done;
  const bool queued = session->strand().Post([&] {
    const auto attachment = *session->Attach(opened->epoch(), peer, [](const absl::Status&) {});
    UploadChunk chunk;
    chunk.raw_size = static_cast<int64_t>(body.size());
    chunk.crc32c = Crc32c(body);
    chunk.data = body;
    if (!session->Append(attachment, std::move(chunk)).ok()) std::abort();
    session->Complete(attachment, finish, [&](const auto& result) { done.set_value(result.ok()); });
  });
  if (!queued || !done.get_future().get()) std::abort();
}

// Returns the fields that the signature of the node covers.
SignedResult SignedOf(const std::string& node, int attempt, const UploadFinish& finish) {
  return {.run = testing::kRun,
          .plugin = "facts",
          .node = node,
          .attempt = attempt,
          .size = finish.size,
          .sha256 = finish.sha256,
          .media_type = testing::SpoolFixture::kMediaType,
          .file_name = testing::SpoolFixture::kFileName};
}

// Arguments: nodes, bytes of a result.
void BM_AcceptedResults(benchmark::State& state) {
  const auto nodes = static_cast<int>(state.range(0));
  const std::string body(static_cast<size_t>(state.range(1)), 'x');
  const testing::Signers signers(SystemClock().Now());
  std::vector<std::vector<UploadFinish>> finishes(static_cast<size_t>(nodes));
  for (int n = 0; n < nodes; ++n) {
    for (int i = 1; i <= kResultsOfNode; ++i) {
      UploadFinish finish;
      finish.size = static_cast<int64_t>(body.size());
      finish.crc32c = Crc32c(body);
      finish.sha256 = DigestBytes(Sha256::Of(body));
      const std::string node = absl::StrCat("n", n);
      signers.Sign(SignedOf(node, i, finish), node, &finish);
      finishes[static_cast<size_t>(n)].push_back(std::move(finish));
    }
  }
  for (auto _ : state) {
    state.PauseTiming();
    auto scratch = std::make_unique<Scratch>(signers);
    Spool& spool = scratch->spool();
    state.ResumeTiming();
    std::vector<std::thread> threads;
    for (int n = 0; n < nodes; ++n) {
      threads.emplace_back([&, n] {
        for (int i = 1; i <= kResultsOfNode; ++i) {
          Deliver(spool, absl::StrCat("n", n), i, body,
                  finishes[static_cast<size_t>(n)][static_cast<size_t>(i - 1)]);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    state.PauseTiming();
    scratch.reset();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * nodes * kResultsOfNode);
}
BENCHMARK(BM_AcceptedResults)
    ->Args({1, 4096})
    ->Args({16, 4096})
    ->Args({16, 100'000})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

// Argument: threads that deliver.
void BM_DeliveredResults(benchmark::State& state) {
  constexpr int kNodes = 16;
  const std::string body(4096, 'x');
  const testing::Signers signers(SystemClock().Now());
  for (auto _ : state) {
    state.PauseTiming();
    auto scratch = std::make_unique<Scratch>(signers);
    Spool& spool = scratch->spool();
    for (int n = 0; n < kNodes; ++n) {
      for (int i = 1; i <= kResultsOfNode / 4; ++i) {
        UploadFinish finish;
        finish.size = static_cast<int64_t>(body.size());
        finish.crc32c = Crc32c(body);
        finish.sha256 = DigestBytes(Sha256::Of(body));
        const std::string node = absl::StrCat("n", n);
        signers.Sign(SignedOf(node, i, finish), node, &finish);
        Deliver(spool, node, i, body, finish);
      }
    }
    state.ResumeTiming();
    std::vector<std::thread> threads;
    for (int i = 0; i < state.range(0); ++i) {
      threads.emplace_back([&] {
        while (const auto delivery = spool.Dequeue()) {
          if (!spool.Read(*delivery, 0).ok()) std::abort();
          spool.Finish(*delivery, "committed");
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    state.PauseTiming();
    scratch.reset();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * kNodes * (kResultsOfNode / 4));
}
BENCHMARK(BM_DeliveredResults)->Arg(3)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace muster

BENCHMARK_MAIN();
