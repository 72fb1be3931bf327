#include "services/aggregator/runs/sealer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <latch>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/aggregator/changes/change_dispatcher.h"
#include "services/aggregator/runs/lifecycle.h"
#include "services/aggregator/testing/test_state.h"
#include "services/common/archive/test_support.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/error.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/blob/forwarding_blob_store.h"
#include "services/common/upload/blob_names.h"

namespace muster {
namespace {

using testing::Intact;
using testing::TestState;

// A blob store that runs a function when an archive is begun.
class InterruptedBlobs : public ForwardingBlobStore {
 public:
  using ForwardingBlobStore::ForwardingBlobStore;

  std::function<absl::Status()> on_stage = [] { return absl::OkStatus(); };
  std::string unreadable;  // a blob that cannot be opened
  std::string fault = "Input/output error";

  absl::StatusOr<std::unique_ptr<StagedBlob>> Stage(std::string_view id, int64_t size) override {
    RETURN_IF_ERROR(on_stage());
    return ForwardingBlobStore::Stage(id, size);
  }
  absl::StatusOr<std::unique_ptr<ByteSource>> Open(std::string_view name, int64_t at) override {
    if (name == unreadable) return absl::InternalError(fault);
    return ForwardingBlobStore::Open(name, at);
  }
  absl::Status Remove(std::string_view name) override {
    removed.emplace_back(name);
    return ForwardingBlobStore::Remove(name);
  }

  std::vector<std::string> removed;
};

class SealerTest : public ::testing::Test {
 protected:
  // Returns after the build succeeded or failed.
  void Seal() {
    Metrics metrics;
    {
      Sealer sealer(
          state_.store(), blobs_, state_.uploads(), PosixFileOps(), state_ / "", state_.clock,
          redeliveries_, "spiffe://f.muster/service/aggregator/a",
          [this](const std::string& run) { failed_.push_back(run); }, metrics);
      sealer.Seal(kRun);
    }
    EXPECT_NE(metrics.Text().find("muster_seal_seconds_count 1"), std::string::npos);
  }

  // Seals with one sealer, of which the first builds are expected to fail. Returns its metrics.
  std::string SealAfterFailures(int failures) {
    Metrics metrics;
    {
      std::vector<std::promise<void>> ended(static_cast<size_t>(failures) + 1);
      Sealer sealer(
          state_.store(), blobs_, state_.uploads(), PosixFileOps(), state_ / "", state_.clock,
          redeliveries_, "spiffe://f.muster/service/aggregator/a",
          [&](const std::string& run) {
            failed_.push_back(run);
            ended[failed_.size() - 1].set_value();
          },
          metrics);
      for (int i = 0; i < failures; ++i) {
        sealer.Seal(kRun);
        ended[static_cast<size_t>(i)].get_future().wait();
        state_.clock.Advance(kSealRetry);
      }
      sealer.Seal(kRun);
    }
    return metrics.Text();
  }

  // Stores the result of node n1 in a blob.
  void CommitBlob(const std::string& name = "aa") {
    const std::string content = "0123456789";
    auto staged = blobs_.Stage(name, -1);
    ASSERT_TRUE(staged.ok()) << staged.status();
    ASSERT_TRUE((*staged)->Append(content, Crc32c(content)).ok());
    const std::string blob = ResultBlobName(kRun, name);
    ASSERT_TRUE((*staged)->Publish(blob).ok());
    CommitResult commit = Intact(KeyOf("n1"), content);
    commit.result.body = "";
    commit.result.blob = blob;
    state_.Apply(commit);
    blob_ = blob;
  }

  void DamageBlob() {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(state_ / "blobs/blobs")) {
      if (entry.is_regular_file()) std::ofstream(entry.path(), std::ios::in).put('X');
    }
  }

  std::string Archive() {
    const auto source = blobs_.Open(state_.Run().archive.blob, 0);
    EXPECT_TRUE(source.ok()) << source.status();
    std::string bytes(static_cast<size_t>(state_.Run().archive.size) + 1, '\0');
    size_t got = 0;
    while (source.ok()) {
      const auto n = (*source)->Read({bytes.data() + got, bytes.size() - got});
      if (!n.ok() || *n == 0) break;
      got += *n;
    }
    bytes.resize(got);
    return bytes;
  }

  TestState state_;
  InterruptedBlobs blobs_{state_.blobs()};
  RedeliveryWait redeliveries_{state_.store(), blobs_, state_.clock,
                               "spiffe://f.muster/service/aggregator/a"};
  std::vector<std::string> failed_;
  std::string blob_;
};

TEST_F(SealerTest, UnreadableBlobIsDamagedAfterSeveralAttempts) {
  state_.Plan({"n1", "n2"});
  CommitBlob();
  state_.Apply(Intact(KeyOf("n2"), "{}"));
  blobs_.unreadable = blob_;
  const std::string metrics = SealAfterFailures(kMaxReadFailures - 1);
  EXPECT_EQ(state_.Run().state, RunState::kComplete);
  EXPECT_EQ(state_.Run().seal_fault, "");
  EXPECT_EQ(failed_.size(), static_cast<size_t>(kMaxReadFailures - 1));
  EXPECT_NE(metrics.find("muster_seal_damaged_results_total 1"), std::string::npos);
  const auto files = ReadTarGz(Archive());
  EXPECT_EQ(files.at("plugins/facts/results/n2/facts.json"), "{}");
  EXPECT_NE(files.at("plugins/facts/errors/n1/error.json").find("Input/output error"),
            std::string::npos);
}

TEST_F(SealerTest, LackOfDescriptorsLosesNoResult) {
  state_.Plan({"n1"});
  CommitBlob();
  blobs_.unreadable = blob_;
  blobs_.fault = "open: Too many open files";
  SealAfterFailures(kMaxReadFailures + 1);
  EXPECT_EQ(state_.Run().state, RunState::kPostProcessing);
}

TEST_F(SealerTest, DamagedBlobIsCountedAndMarkedAfterTheGrace) {
  state_.Plan({"n1"});
  CommitBlob();
  DamageBlob();
  Seal();
  EXPECT_EQ(failed_.size(), 1U);
  EXPECT_EQ(state_.Run().damaged, 1);
  state_.clock.Advance(absl::Microseconds(kGrace));
  EXPECT_NE(SealAfterFailures(0).find("muster_seal_damaged_results_total 1"), std::string::npos);
  EXPECT_EQ(state_.Run().state, RunState::kComplete);
  EXPECT_NE(ReadTarGz(Archive()).at("meta/manifest.json").find("damaged"), std::string::npos);
}

TEST_F(SealerTest, ResultThatIsRestoredWithinTheGraceIsInTheArchive) {
  state_.Plan({"n1"});
  CommitBlob();
  DamageBlob();
  Seal();
  CommitBlob("bb");
  EXPECT_NE(SealAfterFailures(0).find("muster_seal_damaged_results_total 0"), std::string::npos);
  EXPECT_EQ(ReadTarGz(Archive()).at("plugins/facts/results/n1/facts.json"), "0123456789");
}

TEST_F(SealerTest, RunWithAllOutcomesGetsItsArchive) {
  state_.Plan({"n1", "n2"});
  state_.Apply(Intact(KeyOf("n1"), "{\"a\":1}"));
  state_.Apply(Failed(KeyOf("n2"), "no disk"));
  Seal();
  const RunRecord run = state_.Run();
  EXPECT_EQ(run.state, RunState::kComplete);
  EXPECT_EQ(run.archive.file_name, "197001010000_muster_00112233445566aa.tar.gz");
  const std::string archive = Archive();
  EXPECT_EQ(static_cast<int64_t>(archive.size()), run.archive.size);
  EXPECT_EQ(DigestBytes(Sha256::Of(archive)), run.archive.sha256);
  const auto files = ReadTarGz(archive);
  EXPECT_EQ(files.at("plugins/facts/results/n1/facts.json"), "{\"a\":1}");
  EXPECT_NE(files.at("plugins/facts/errors/n2/error.json").find("no disk"), std::string::npos);
  EXPECT_TRUE(failed_.empty());
  EXPECT_TRUE(blobs_.ListStaged()->empty());
}

TEST_F(SealerTest, ResultCommittedDuringTheBuildIsInTheArchive) {
  state_.Plan({"n1"});
  state_.Apply(TimeOutRun{kRun, "too late", kDeadline});
  blobs_.on_stage = [this] {
    state_.Apply(Intact(KeyOf("n1"), "{\"late\":1}", kDeadline + 1));
    return absl::OkStatus();
  };
  Seal();
  EXPECT_EQ(state_.Run().state, RunState::kPostProcessing);
  EXPECT_EQ(failed_, std::vector<std::string>{kRun});  // the caller tries again
  ASSERT_EQ(blobs_.removed.size(), 1U);                // the outdated archive
  EXPECT_FALSE(blobs_.Size(blobs_.removed[0]).ok());
  blobs_.on_stage = [] { return absl::OkStatus(); };
  Seal();
  EXPECT_EQ(state_.Run().state, RunState::kComplete);
  EXPECT_EQ(ReadTarGz(Archive()).at("plugins/facts/results/n1/facts.json"), "{\"late\":1}");
}

TEST_F(SealerTest, FullDiskLeavesTheRunUnchanged) {
  state_.Plan({"n1"});
  state_.Apply(Intact(KeyOf("n1"), "{}"));
  blobs_.on_stage = [] {
    return MakeError(absl::StatusCode::kResourceExhausted, "DISK_FULL", "full", "Free some.");
  };
  Seal();
  EXPECT_EQ(failed_, std::vector<std::string>{kRun});
  EXPECT_EQ(state_.Run().state, RunState::kPostProcessing);
  EXPECT_EQ(state_.Run().seal_fault, "the disk has no space for the archive");
  blobs_.on_stage = [] { return absl::OkStatus(); };
  Seal();
  EXPECT_EQ(state_.Run().state, RunState::kComplete);
  EXPECT_EQ(state_.Run().seal_fault, "");
}

TEST_F(SealerTest, TextOfAFaultIsCut) {
  state_.Plan({"n1"});
  state_.Apply(Intact(KeyOf("n1"), "{}"));
  blobs_.on_stage = [] { return absl::InternalError(std::string(5000, 'x')); };
  Seal();
  EXPECT_EQ(state_.Run().seal_fault, std::string(1024, 'x'));
}

TEST_F(SealerTest, RunsThatWaitForAThreadAreBounded) {
  state_.Plan({"n1"});
  state_.Apply(Intact(KeyOf("n1"), "{}"));
  std::promise<void> building;
  std::promise<void> release;
  blobs_.on_stage = [&] {
    building.set_value();
    release.get_future().wait();
    return absl::OkStatus();
  };
  std::atomic<bool> held = true;
  Metrics metrics;
  {
    Sealer sealer(
        state_.store(), blobs_, state_.uploads(), PosixFileOps(), state_ / "", state_.clock,
        redeliveries_, "spiffe://f.muster/service/aggregator/a",
        [&](const std::string& run) {
          if (held) failed_.push_back(run);
        },
        metrics);
    sealer.Seal(kRun);
    building.get_future().wait();
    for (int i = 0; i < 1025; ++i) sealer.Seal(absl::StrCat("r", i));
    held = false;
    release.set_value();
  }
  EXPECT_EQ(failed_, std::vector<std::string>{"r1024"});
}

TEST_F(SealerTest, AsManyRunsAreBuiltAsThereAreThreads) {
  std::vector<std::string> runs;
  for (int i = 0; i < 10; ++i) {
    runs.push_back(absl::StrCat("00112233445566a", i));
    state_.Apply(MakeRun(runs.back(), {{"facts", "n1"}}));
    CommitResult commit = Intact(KeyOf("n1"), "{}");
    commit.result.key.run = runs.back();
    state_.Apply(commit);
  }
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::latch together(2);
  std::atomic<int> begun = 0;
  blobs_.on_stage = [&] {
    {
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
    }
    if (begun++ < 2) together.arrive_and_wait();
    return absl::OkStatus();
  };
  Metrics metrics;
  {
    Sealer sealer(
        state_.store(), blobs_, state_.uploads(), PosixFileOps(), state_ / "", state_.clock,
        redeliveries_, "spiffe://f.muster/service/aggregator/a", [](const std::string&) {}, metrics,
        /*threads=*/2);
    for (const std::string& run : runs) sealer.Seal(run);
  }
  EXPECT_EQ(threads.size(), 2u);
}

// Each fault has another text and is therefore a change of the run, which causes a review.
TEST_F(SealerTest, RunWhoseBuildFailsIsBuiltOncePerRetryTime) {
  state_.Plan({"n1"});
  state_.Apply(Intact(KeyOf("n1"), "{}"));
  const absl::Duration began = state_.clock.MonotonicNow();
  std::vector<absl::Duration> builds;
  std::vector<std::promise<void>> ended(1000);  // by build
  blobs_.on_stage = [&] {
    builds.push_back(state_.clock.MonotonicNow() - began);
    return absl::InternalError(absl::StrCat("write of ", builds.size(), ": Input/output error"));
  };
  const auto lifecycle = std::make_shared<Lifecycle>(state_.store(), state_.uploads(), state_.clock,
                                                     state_.executor(), state_.clock, redeliveries_,
                                                     "spiffe://f.muster/service/aggregator/a");
  ChangeDispatcher dispatcher(state_.feed(), state_.executor());
  dispatcher.AddObserver([&](const ChangeRecord& change) { lifecycle->ReviewSoon(change.run); });
  Metrics metrics;
  Sealer sealer(
      state_.store(), blobs_, state_.uploads(), PosixFileOps(), state_ / "", state_.clock,
      redeliveries_, "spiffe://f.muster/service/aggregator/a",
      [&](const std::string& run) {
        lifecycle->ReviewAfter(run, kSealRetry);
        ended[builds.size() - 1].set_value();
      },
      metrics);
  ASSERT_TRUE(dispatcher.Start().ok());
  size_t queued = 0;  // written by the executor; read after Settle
  ASSERT_TRUE(lifecycle
                  ->Start([&](const std::string& run) {
                    const absl::Duration wait = sealer.Seal(run);
                    if (wait == absl::ZeroDuration()) ++queued;
                    return wait;
                  })
                  .ok());
  size_t waited = 0;
  const auto review = [&] {
    state_.clock.Advance(absl::ZeroDuration());
    state_.Settle();
    for (; waited < queued; ++waited) ended[waited].get_future().wait();
    state_.Apply(AbandonUpload{});  // its callback runs after the subscribers of the fault
    state_.Settle();
  };
  for (int second = 0; second <= 20; ++second) {
    for (int i = 0; i < 3; ++i) review();
    state_.clock.Advance(absl::Seconds(1));
  }
  lifecycle->Stop();
  dispatcher.Stop();
  EXPECT_EQ(builds,
            (std::vector<absl::Duration>{absl::ZeroDuration(), absl::Seconds(5), absl::Seconds(10),
                                         absl::Seconds(15), absl::Seconds(20)}));
  EXPECT_EQ(state_.Run().seal_fault, "write of 5: Input/output error");
}

// A crash or an error came between the publication of the archive and the change of the run.
TEST_F(SealerTest, ArchiveOfAnUnfinishedBuildIsRemoved) {
  state_.Plan({"n1"});
  state_.Apply(Intact(KeyOf("n1"), "{}"));
  ASSERT_TRUE((*blobs_.Stage("00ff", -1))->Publish(ArchiveBlobName(kRun, "00ff")).ok());
  Seal();
  EXPECT_EQ(state_.Run().state, RunState::kComplete);
  EXPECT_EQ(*blobs_.ListPublished(), std::vector<std::string>{state_.Run().archive.blob});
}

TEST_F(SealerTest, RunThatIsNotDueIsNotSealed) {
  state_.Plan({"n1"});
  Seal();
  EXPECT_EQ(state_.Run().state, RunState::kPlanned);
  state_.Apply(EndRun{.run = kRun, .at = kCreated});
  Seal();
  EXPECT_EQ(state_.Run().state, RunState::kCancelled);
  EXPECT_TRUE(failed_.empty());
}

TEST_F(SealerTest, UploadsOfATimedOutPairEnd) {
  state_.Plan({"n1"});
  const auto opened = state_.OpenUploadAndWait(Opening(KeyOf("n1"), "").upload);
  ASSERT_TRUE(opened.ok()) << opened.status();
  state_.Apply(TimeOutRun{kRun, "too late", kDeadline});
  Seal();
  EXPECT_EQ(state_.Run().state, RunState::kComplete);
  EXPECT_TRUE(state_.store().OpenUploads(kRun)->empty());
  EXPECT_EQ(ReasonOf(state_.uploads().Find(opened->id).status()), "UPLOAD_NOT_FOUND");
}

}  // namespace
}  // namespace muster
