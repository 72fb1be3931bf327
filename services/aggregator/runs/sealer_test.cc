#include "services/aggregator/runs/sealer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <latch>
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
#include "services/aggregator/testing/sealer_fixture.h"
#include "services/common/archive/test_support.h"
#include "services/common/base/error.h"
#include "services/common/base/sha256.h"
#include "services/common/upload/blob_names.h"

namespace muster {
namespace {

using testing::Intact;

class SealerTest : public testing::SealerFixture {};

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
