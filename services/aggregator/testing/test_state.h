// The foundation of the aggregator's classes without servers: a real store and real files in a
// temporary folder, and a clock that only the test moves.
#ifndef MUSTER_SERVICES_AGGREGATOR_TESTING_TEST_STATE_H_
#define MUSTER_SERVICES_AGGREGATOR_TESTING_TEST_STATE_H_

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "services/aggregator/uploads/result_committer.h"
#include "services/aggregator/uploads/uploads.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/executor.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/metrics.h"
#include "services/common/base/sha256.h"
#include "services/common/blob/files/files_blob_store.h"
#include "services/common/identity/authority.h"
#include "services/common/identity/revocation.h"
#include "services/common/rpc/open_streams.h"
#include "services/common/store/sqlite/sqlite_harness.h"

namespace muster::testing {

inline constexpr char kFleet[] = "f.muster";

inline constexpr char kDefinition[] =
    "sonobuoy-config: {driver: DaemonSet, plugin-name: facts, result-format: raw}\n"
    "spec: {name: plugin, image: example/plugin:v1}\n";

// Not thread-safe, but its parts are. The runs of store_harness.h fit its clock.
class TestState {
 public:
  TestState() {
    EXPECT_TRUE(harness_.Open().ok());
    blobs_ = *OpenFilesBlobStore({.root = folder_ / "blobs"});
    committer_.emplace(store(), *blobs_, executor_, clock, kFleet, root_.certificate(),
                       revocations_, metrics_);
    uploads_.emplace(store(), *blobs_, *committer_, disk_, clock, streams_, Uploads::Limits{});
  }

  StateStore& store() { return harness_.state(); }
  ChangeFeed& feed() { return harness_.feed(); }
  BlobStore& blobs() { return *blobs_; }
  Metrics& metrics() { return metrics_; }
  Uploads& uploads() { return *uploads_; }
  OpenStreams& streams() { return streams_; }
  Executor& executor() { return executor_; }  // one thread
  const FleetRoot& root() const { return root_; }
  RevocationList& revocations() { return revocations_; }
  std::string operator/(std::string_view name) const { return folder_ / name; }

  // Opens the store again with other options; objects that use it must be destroyed before.
  SqliteStoreOptions& store_options() { return harness_.options(); }
  void ReopenStore() { EXPECT_TRUE(harness_.Open().ok()); }

  template <typename C>
  typename C::Result Apply(C command) {
    auto result = store().ApplyAndWait(std::move(command));
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *std::move(result) : typename C::Result{};
  }

  // Creates a run that expects plugin "facts" from these nodes, by kDeadline, with kGrace after it.
  void Plan(const std::vector<std::string>& nodes, std::string_view run = kRun) {
    std::vector<PlannedPair> pairs;
    for (const std::string& node : nodes) pairs.push_back({"facts", node});
    CreateRun command = MakeRun(run, std::move(pairs));
    command.run.plugins = {{.name = "facts",
                            .has_image = true,
                            .result_format = "raw",
                            .definition_yaml = kDefinition}};
    Apply(std::move(command));
  }

  RunRecord Run(std::string_view run = kRun) {
    const auto view = store().GetRun(run);
    EXPECT_TRUE(view.ok() && view->has_value()) << view.status();
    return view.ok() && *view ? (*view)->run : RunRecord{};
  }

  // Opens an upload and waits for the answer.
  absl::StatusOr<OpenedUpload> OpenUploadAndWait(const UploadRecord& upload,
                                                 const UploadPeer& opener = {}) {
    return OpenAndWait(*uploads_, upload, opener);
  }
  static absl::StatusOr<OpenedUpload> OpenAndWait(Uploads& uploads, const UploadRecord& upload,
                                                  const UploadPeer& opener) {
    std::promise<absl::StatusOr<OpenedUpload>> answer;
    uploads.Open(upload, opener, std::nullopt,
                 [&](absl::StatusOr<OpenedUpload> opened) { answer.set_value(std::move(opened)); });
    return answer.get_future().get();
  }

  // Waits for what the executor was given so far.
  void Settle() {
    std::promise<void> done;
    ASSERT_TRUE(executor_.Post([&] { done.set_value(); }));
    done.get_future().wait();
  }

  FakeClock clock{absl::FromUnixMicros(kCreated)};

 private:
  TempFolder folder_;
  SqliteHarness harness_;
  std::unique_ptr<BlobStore> blobs_;
  RevocationList revocations_;
  const FleetRoot root_ = *FleetRoot::Create(kFleet, *PrivateKey::Generate(), absl::Now());
  Metrics metrics_;
  OpenStreams streams_{metrics_};
  std::optional<ResultCommitter> committer_;
  std::optional<Uploads> uploads_;
  Executor disk_{{"disk", 1, 100}};
  Executor executor_{{"work", 1, 100}};
};

// Returns a result whose checksums are those of its bytes.
inline CommitResult Intact(const ResultKey& key, std::string_view content, int64_t at = 2'000'000) {
  CommitResult commit = Genuine(key, content, at);
  commit.result.crc32c = Crc32c(content);
  commit.result.sha256 = DigestBytes(Sha256::Of(content));
  return commit;
}

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_AGGREGATOR_TESTING_TEST_STATE_H_
