#include "services/aggregator/verify/scrubber.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/executor.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/metrics.h"
#include "services/common/base/sha256.h"
#include "services/common/blob/files/files_blob_store.h"
#include "services/common/blob/forwarding_blob_store.h"
#include "services/common/store/sqlite/sqlite_harness.h"
#include "services/common/upload/blob_names.h"

namespace muster {
namespace {

constexpr int kResults = 500;
constexpr int64_t kRate = 100 * 4096;  // a hundred small results per second

// A blob store in which the first calls of RemoveAll fail.
class FailingRemoval : public ForwardingBlobStore {
 public:
  using ForwardingBlobStore::ForwardingBlobStore;

  absl::Status RemoveAll(std::string_view prefix) override {
    return failures-- > 0 ? absl::InternalError("Input/output error")
                          : ForwardingBlobStore::RemoveAll(prefix);
  }

  std::atomic<int> failures = 0;
};

class ScrubberTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(harness_.Open().ok());
    std::vector<PlannedPair> pairs = {{"facts", "bad"}};
    for (int i = 0; i < kResults; ++i) pairs.push_back({"facts", absl::StrCat("n", i)});
    ASSERT_TRUE(harness_.state().ApplyAndWait(MakeRun(kRun, pairs)).ok());
    for (int i = 0; i < kResults; ++i) {
      CommitResult command = Genuine(KeyOf(absl::StrCat("n", i)), "content");
      command.result.crc32c = Crc32c("content");
      command.result.sha256 = DigestBytes(Sha256::Of("content"));
      ASSERT_TRUE(harness_.state().ApplyAndWait(std::move(command)).ok());
    }
  }

  void Start() {
    metrics_.emplace();
    scrubber_.emplace(harness_.state(), failing_, clock_, clock_, executor_,
                      Scrubber::Options{kRate, absl::Hours(24), "spiffe://f.muster/service/a"},
                      *metrics_);
    scrubber_->Start();
  }

  // Advances the clock by steps, and waits for the work of each.
  void Run(absl::Duration time, absl::Duration step = absl::Seconds(1)) {
    for (absl::Duration past; past < time; past += step) {
      clock_.Advance(step);
      std::promise<void> done;
      ASSERT_TRUE(executor_.Post([&] { done.set_value(); }));
      done.get_future().wait();
    }
  }

  int64_t Bytes() {
    const std::string text = metrics_->Text();
    const std::string name = "\nmuster_scrubbed_bytes_total ";
    return std::stoll(text.substr(text.find(name) + name.size()));
  }

  // Stores a result that differs from its record.
  void Damage() {
    CommitResult command = Genuine(KeyOf("bad"), "content");
    command.result.crc32c = 1;
    ASSERT_TRUE(harness_.state().ApplyAndWait(std::move(command)).ok());
  }

  TempFolder folder_;
  SqliteHarness harness_;
  std::unique_ptr<BlobStore> blobs_ = *OpenFilesBlobStore({.root = folder_ / "blobs"});
  FailingRemoval failing_{*blobs_};
  FakeClock clock_;
  Executor executor_{{"scrub", 1, 100}};
  std::optional<Metrics> metrics_;
  std::optional<Scrubber> scrubber_;
};

constexpr absl::Duration kMoment = absl::Milliseconds(10);
constexpr int64_t kWholePass = kResults * 7;  // bytes

TEST_F(ScrubberTest, PassKeepsItsRate) {
  Start();
  Run(absl::Seconds(8));
  EXPECT_GT(Bytes(), 0);
  EXPECT_LT(Bytes(), kWholePass);
  Run(absl::Seconds(10));
  EXPECT_EQ(Bytes(), kWholePass);
  Run(absl::Hours(23), absl::Hours(1));
  EXPECT_EQ(Bytes(), kWholePass);
  Run(absl::Hours(2), absl::Minutes(1));
  EXPECT_EQ(Bytes(), 2 * kWholePass);
}

TEST_F(ScrubberTest, DamageIsCounted) {
  Damage();
  Start();
  Run(absl::Seconds(20));
  EXPECT_NE(metrics_->Text().find("\nmuster_damaged_results 1\n"), std::string::npos);
}

TEST_F(ScrubberTest, DeclinedResultIsNotRequestedAgain) {
  Damage();
  Start();
  Run(absl::Seconds(20));
  const DeclineRedelivery declined{.key = KeyOf("bad"), .reason = "not kept"};
  ASSERT_TRUE(harness_.state().ApplyAndWait(declined)->declined);
  Run(absl::Hours(25), absl::Minutes(1));
  EXPECT_EQ(Bytes(), 2 * (kWholePass + 7));
  EXPECT_EQ(harness_.state().RequestedRedeliveries(kRun, "", 1)->items.size(), 0u);
}

TEST_F(ScrubberTest, RestartDoesNotBeginAnotherPass) {
  Start();
  Run(absl::Seconds(20));
  scrubber_.reset();
  Start();
  Run(absl::Hours(23), absl::Hours(1));
  EXPECT_EQ(Bytes(), 0);
  Run(absl::Hours(2), absl::Minutes(1));
  EXPECT_EQ(Bytes(), kWholePass);
}

TEST_F(ScrubberTest, SweepKeepsTheRateAndCanBeStopped) {
  for (int i = 0; i < 100; ++i) {
    auto staged = *blobs_->Stage(absl::StrCat("a", i), -1);
    ASSERT_TRUE(staged->Publish(ResultBlobName(absl::StrCat("b", i), "aa")).ok());
  }
  Start();
  Run(absl::Seconds(11), kMoment);  // the pass, at a hundred records per second
  EXPECT_EQ(Bytes(), kWholePass);
  const size_t during = blobs_->ListPublished()->size();
  EXPECT_LT(during, 100U);
  EXPECT_GT(during, 0U);
  scrubber_->Stop();
  Run(absl::Seconds(10));
  EXPECT_EQ(blobs_->ListPublished()->size(), during);
  Start();  // the pass was not complete
  Run(absl::Seconds(20), kMoment);
  EXPECT_TRUE(blobs_->ListPublished()->empty());
}

// Its next try is the next pass.
TEST_F(ScrubberTest, FailedRunDoesNotKeepOthersFromTheSweep) {
  for (int i = 0; i < 3; ++i) {
    auto staged = *blobs_->Stage(absl::StrCat("a", i), -1);
    ASSERT_TRUE(staged->Publish(ResultBlobName(absl::StrCat("b", i), "aa")).ok());
  }
  failing_.failures = 1;
  Start();
  Run(absl::Minutes(2));
  EXPECT_EQ(blobs_->ListPublished()->size(), 1U);
  Run(absl::Hours(25), absl::Minutes(1));
  EXPECT_TRUE(blobs_->ListPublished()->empty());
}

TEST_F(ScrubberTest, RestartContinuesAtTheStoredPosition) {
  ASSERT_TRUE(harness_.state()
                  .ApplyAndWait(SaveScrubPosition{absl::StrCat("\n", kRun, "\nfacts/n449")})
                  .ok());
  Start();
  Run(absl::Seconds(20));
  EXPECT_GT(Bytes(), 0);
  EXPECT_LT(Bytes(), kWholePass);
}

}  // namespace
}  // namespace muster
