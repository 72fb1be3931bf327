#include "services/aggregator/runs/retention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/aggregator/testing/test_state.h"
#include "services/common/base/crc32c.h"
#include "services/common/blob/forwarding_blob_store.h"
#include "services/common/upload/blob_names.h"

namespace muster {
namespace {

using testing::kFleet;
using testing::TestState;

constexpr char kActor[] = "spiffe://f.muster/service/aggregator/main";

// A blob store in which the next calls that remove bytes fail.
class FailingRemoval : public ForwardingBlobStore {
 public:
  using ForwardingBlobStore::ForwardingBlobStore;

  absl::Status DiscardStaged(std::string_view id) override {
    return failing_discards-- > 0 ? Failure() : ForwardingBlobStore::DiscardStaged(id);
  }
  absl::Status RemoveAll(std::string_view prefix) override {
    return failing_removals-- > 0 ? Failure() : ForwardingBlobStore::RemoveAll(prefix);
  }

  int failing_discards = 0;
  int failing_removals = 0;

 private:
  static absl::Status Failure() { return absl::InternalError("Input/output error"); }
};

class RetentionTest : public ::testing::Test {
 protected:
  ~RetentionTest() override {
    if (retention_) retention_->Stop();
  }

  // Starts as the service does, also after a crash.
  void Start(const RetentionRules& rules) {
    if (retention_) retention_->Stop();
    metrics_.emplace();
    retention_ =
        std::make_unique<Retention>(state_.store(), runs_, readers_, state_.clock, state_.clock,
                                    state_.executor(), rules, kActor, *metrics_);
    retention_->Start();
  }

  void PassTime(absl::Duration time) {
    for (absl::Duration passed; passed < time; passed += absl::Seconds(11)) {
      state_.clock.Advance(absl::Seconds(10));
      for (int i = 0; i < 10; ++i) {  // a deletion schedules the next one
        state_.Settle();
        state_.clock.Advance(absl::Milliseconds(100));
      }
      state_.Settle();
    }
  }

  static std::string Id(int number) { return absl::StrCat("00000000000000", number); }

  // Creates a run whose result has `bytes` in a blob, and which ends now.
  void Finish(int number, int bytes = 0) {
    const std::string run = Id(number);
    state_.Plan({"n1"}, run);
    CommitResult commit = Genuine({run, "facts", "n1"}, "");
    if (bytes > 0) {
      const std::string content(static_cast<size_t>(bytes), 'x');
      auto staged = *state_.blobs().Stage(absl::StrCat("u", number), bytes);
      ASSERT_TRUE(staged->Append(content, Crc32c(content)).ok());
      commit.result.blob = ResultBlobName(run, absl::StrCat("u", number));
      commit.result.size = bytes;
      ASSERT_TRUE(staged->Publish(commit.result.blob).ok());
    }
    state_.Apply(commit);
    state_.Apply(EndRun{
        .run = run, .state = RunState::kFailed, .at = absl::ToUnixMicros(state_.clock.Now())});
    state_.clock.Advance(absl::Microseconds(1));
  }

  // Returns the last digits of the stored runs, oldest first.
  std::string Stored() {
    std::string digits;
    const auto page = state_.store().ListRuns("", 1000);
    for (const RunRecord& run : page->items) digits += run.id.back();
    std::ranges::sort(digits);
    return digits;
  }

  std::string LastAudit(int number) {
    return state_.store().Audit({.run = Id(number)}, "", 100)->items.back().text;
  }

  Intermediate NewIntermediate() {
    const PrivateKey key = *PrivateKey::Generate();
    return *Intermediate::Load(kFleet, key,
                               *state_.root().SignIntermediate(key.public_key(), absl::Now()),
                               state_.root().certificate());
  }

  TestState state_;
  Authorities authorities_{NewIntermediate(), *KeyWrap::OpenOrCreate(state_ / "store.key"),
                           state_.store(), state_.clock};
  FailingRemoval blobs_{state_.blobs()};
  Runs runs_{state_.store(), blobs_, state_.uploads(), authorities_, state_.clock, {}, ""};
  RunReaders readers_;
  std::optional<Metrics> metrics_;
  std::unique_ptr<Retention> retention_;
};

TEST_F(RetentionTest, WithoutARuleEveryRunIsKept) {
  Finish(1);
  Start({});
  PassTime(absl::Hours(1));
  EXPECT_EQ(Stored(), "1");
}

TEST_F(RetentionTest, GaugesOfOneScrapeShareACountOfTheRuns) {
  const auto text = [this](const char* line) {
    return metrics_->Text().find(line) != std::string::npos;
  };
  Finish(1, 100);
  Start({});
  EXPECT_TRUE(text("\nmuster_finished_runs 1\n"));
  Finish(2, 10);
  EXPECT_TRUE(text("\nmuster_finished_run_bytes 100\n"));
  state_.clock.Advance(absl::Seconds(1));
  EXPECT_TRUE(text("\nmuster_finished_run_bytes 110\n"));
}

TEST_F(RetentionTest, RunIsDeletedWhenItsAgeIsReached) {
  Finish(1);
  Start({.age = absl::Hours(1)});
  PassTime(absl::Minutes(30));
  Finish(2);
  state_.Plan({"n1"}, Id(3));  // has not ended
  PassTime(absl::Minutes(29));
  EXPECT_EQ(Stored(), "123");
  PassTime(absl::Minutes(1));
  EXPECT_EQ(Stored(), "23");
  EXPECT_EQ(LastAudit(1), "deleted by retention: age=1h");
  PassTime(absl::Minutes(30));
  EXPECT_EQ(Stored(), "3");
}

TEST_F(RetentionTest, LongestEndedRunsAreDeletedBeyondTheNumber) {
  for (int i = 1; i <= 5; ++i) Finish(i);
  Start({.runs = 2});
  PassTime(absl::Seconds(10));
  EXPECT_EQ(Stored(), "45");
  EXPECT_EQ(LastAudit(3), "deleted by retention: runs=2");
}

TEST_F(RetentionTest, LongestEndedRunsAreDeletedBeyondTheBytes) {
  Finish(1, 5000);
  Finish(2, 10);
  Finish(3, 4000);
  Start({.bytes = 4096});
  PassTime(absl::Seconds(10));
  EXPECT_EQ(Stored(), "23");
  EXPECT_EQ(LastAudit(1), "deleted by retention: bytes=4KiB");
  EXPECT_TRUE(absl::IsNotFound(state_.blobs().Size(ResultBlobName(Id(1), "u1")).status()));
  EXPECT_EQ(*state_.blobs().Size(ResultBlobName(Id(3), "u3")), 4000);
  const std::string text = metrics_->Text();
  EXPECT_NE(text.find("muster_retention_deleted_runs_total 1"), std::string::npos);
  EXPECT_NE(text.find("muster_retention_deleted_bytes_total 5000"), std::string::npos);
  EXPECT_NE(text.find("muster_finished_run_bytes 4010"), std::string::npos);
  EXPECT_NE(text.find("muster_finished_runs 2"), std::string::npos);
}

TEST_F(RetentionTest, PinnedRunIsNeitherDeletedNorCounted) {
  for (int i = 1; i <= 3; ++i) Finish(i);
  ASSERT_TRUE(runs_.Pin(Id(1), true, "ann").ok());
  Start({.runs = 2});
  PassTime(absl::Minutes(1));
  EXPECT_EQ(Stored(), "123");
  ASSERT_TRUE(runs_.Pin(Id(1), false, "ann").ok());
  PassTime(absl::Seconds(10));
  EXPECT_EQ(Stored(), "23");
}

TEST_F(RetentionTest, RunInUseIsDeletedAfterItsLastReader) {
  for (int i = 1; i <= 3; ++i) Finish(i);
  RunReaders::Hold reader = readers_.Add(Id(1));
  RunReaders::Hold another = readers_.Add(Id(1));
  Start({.runs = 1});
  PassTime(absl::Minutes(1));
  EXPECT_EQ(Stored(), "13");  // no other run is deleted in its place
  reader.reset();
  PassTime(absl::Seconds(10));
  EXPECT_EQ(Stored(), "13");
  another.reset();
  PassTime(absl::Seconds(10));
  EXPECT_EQ(Stored(), "3");
}

TEST_F(RetentionTest, OneRunIsDeletedAtATime) {
  for (int i = 1; i <= 5; ++i) Finish(i);
  Start({.runs = 1});
  state_.clock.Advance(absl::Seconds(10));
  state_.Settle();
  EXPECT_EQ(Stored(), "2345");
  state_.clock.Advance(absl::Milliseconds(100));
  state_.Settle();
  EXPECT_EQ(Stored(), "345");
}

TEST_F(RetentionTest, RestartContinuesWhereTheCrashWas) {
  for (int i = 1; i <= 3; ++i) Finish(i, 100);
  // The process ended after the record of run 1 was deleted and before its blobs were.
  state_.Apply(DeleteRun{.run = Id(1), .rule = "runs=1"});
  Start({.runs = 1});
  PassTime(absl::Seconds(10));
  EXPECT_EQ(Stored(), "3");
  EXPECT_EQ(state_.blobs().ListPublished()->size(), 2u);
  ASSERT_TRUE(runs_.RemoveLeftBlobs().ok());
  EXPECT_EQ(state_.blobs().ListPublished()->size(), 1u);
}

TEST_F(RetentionTest, StagedBytesThatCannotBeRemovedDoNotKeepTheBlobs) {
  state_.Plan({"n1", "n2"}, Id(1));
  for (const std::string number : {"1", "2"}) {
    state_.Apply(Opening({Id(1), "facts", "n" + number}, "ee0" + number));
    ASSERT_TRUE(state_.blobs().Stage("ee0" + number, -1).ok());
  }
  ASSERT_TRUE((*state_.blobs().Stage("aa", -1))->Publish(ResultBlobName(Id(1), "aa")).ok());
  state_.Apply(EndRun{.run = Id(1), .state = RunState::kFailed, .at = kCreated});
  blobs_.failing_discards = 1;
  EXPECT_TRUE(runs_.Delete(Id(1), "ann").ok());
  EXPECT_EQ(Stored(), "");
  EXPECT_EQ(state_.blobs().ListStaged()->size(), 1U);
  EXPECT_TRUE(state_.blobs().ListPublished()->empty());
}

TEST_F(RetentionTest, BlobsThatCannotBeRemovedAreRemovedLater) {
  Finish(1, 100);
  Finish(2, 100);
  ASSERT_TRUE(runs_.RemoveLeftBlobs().ok());
  blobs_.failing_removals = 2;
  EXPECT_TRUE(runs_.Delete(Id(1), "ann").ok());
  EXPECT_FALSE(runs_.RemoveLeftBlobs().ok());
  EXPECT_EQ(state_.blobs().ListPublished()->size(), 2U);
  EXPECT_TRUE(runs_.RemoveLeftBlobs().ok());
  EXPECT_EQ(*state_.blobs().ListPublished(), std::vector<std::string>{ResultBlobName(Id(2), "u2")});
}

TEST_F(RetentionTest, FirstRuleThatAppliesIsNamed) {
  Finish(1, 5000);
  PassTime(absl::Hours(1));
  Finish(2, 5000);
  Finish(3, 5000);
  std::vector<std::string> rules;
  const RetentionRules all{.age = absl::Minutes(30), .runs = 1, .bytes = 1024};
  ASSERT_TRUE(
      VisitExpiredRuns(state_.store(), all, state_.clock.Now(), [&](const ExpiredRun& expired) {
        rules.push_back(expired.rule);
        return true;
      }).ok());
  EXPECT_EQ(rules, (std::vector<std::string>{"age=30m", "runs=1", "bytes=1KiB"}));
  EXPECT_EQ(Stored(), "123");
}

}  // namespace
}  // namespace muster
