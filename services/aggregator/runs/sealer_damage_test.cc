// Stored results that are damaged or cannot be read when their run is sealed.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "services/aggregator/runs/sealer.h"
#include "services/aggregator/testing/sealer_fixture.h"
#include "services/common/archive/test_support.h"

namespace muster {
namespace {

using testing::Intact;

class SealerDamageTest : public testing::SealerFixture {
 protected:
  ResultRecord Result(const std::string& node) {
    const auto result = state_.store().GetResult(KeyOf(node));
    EXPECT_TRUE(result.ok() && *result) << result.status();
    return result.ok() && *result ? **result : ResultRecord{};
  }
};

TEST_F(SealerDamageTest, UnreadableBlobIsDamagedAfterSeveralAttempts) {
  state_.Plan({"n1", "n2"});
  CommitBlob();
  state_.Apply(Intact(KeyOf("n2"), "{}"));
  blobs_.unreadable = blob_;
  const std::string metrics = SealAfterFailures(kMaxReadFailures, absl::Microseconds(kGrace));
  EXPECT_EQ(state_.Run().state, RunState::kComplete);
  EXPECT_EQ(state_.Run().seal_fault, "");
  EXPECT_EQ(failed_.size(), static_cast<size_t>(kMaxReadFailures));
  EXPECT_NE(metrics.find("muster_seal_damaged_results_total 1"), std::string::npos);
  const auto files = ReadTarGz(Archive());
  EXPECT_EQ(files.at("plugins/facts/results/n2/facts.json"), "{}");
  EXPECT_NE(files.at("plugins/facts/errors/n1/error.json").find("Input/output error"),
            std::string::npos);
}

TEST_F(SealerDamageTest, UnreadableBlobThatCountsAsLostIsRequestedFromItsNode) {
  state_.Plan({"n1"});
  CommitBlob();
  blobs_.unreadable = blob_;
  SealAfterFailures(kMaxReadFailures - 1);
  EXPECT_EQ(state_.Run().state, RunState::kPostProcessing);
  EXPECT_EQ(Result("n1").redelivery, kRedeliveryRequested);
  EXPECT_EQ(Result("n1").damage, "cannot be opened: reading failed 5 times: Input/output error");
  CommitBlob("bb");  // by its node
  SealAfterFailures(0);
  EXPECT_EQ(state_.Run().state, RunState::kComplete);
  EXPECT_EQ(ReadTarGz(Archive()).at("plugins/facts/results/n1/facts.json"), "0123456789");
}

TEST_F(SealerDamageTest, DeclinedResultIsNotWaitedForNorRequestedAgain) {
  state_.Plan({"n1", "n2"});
  CommitBlob();
  DamageBlob();
  state_.Apply(Intact(KeyOf("n2"), "{}"));
  Seal();
  EXPECT_EQ(state_.Run().state, RunState::kPostProcessing);
  state_.Apply(DeclineRedelivery{.key = KeyOf("n1"), .reason = "not kept"});
  EXPECT_NE(SealAfterFailures(0).find("muster_seal_damaged_results_total 1"), std::string::npos);
  EXPECT_EQ(failed_.size(), 1U);
  EXPECT_EQ(state_.Run().state, RunState::kComplete);
  EXPECT_EQ(Result("n1").redelivery, "declined: not kept");
}

TEST_F(SealerDamageTest, LackOfDescriptorsLosesNoResult) {
  state_.Plan({"n1"});
  CommitBlob();
  blobs_.unreadable = blob_;
  blobs_.fault = "open: Too many open files";
  SealAfterFailures(kMaxReadFailures + 1);
  EXPECT_EQ(state_.Run().state, RunState::kPostProcessing);
}

TEST_F(SealerDamageTest, DamagedBlobIsCountedAndMarkedAfterTheGrace) {
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

TEST_F(SealerDamageTest, ResultThatIsRestoredWithinTheGraceIsInTheArchive) {
  state_.Plan({"n1"});
  CommitBlob();
  DamageBlob();
  Seal();
  CommitBlob("bb");
  EXPECT_NE(SealAfterFailures(0).find("muster_seal_damaged_results_total 0"), std::string::npos);
  EXPECT_EQ(ReadTarGz(Archive()).at("plugins/facts/results/n1/facts.json"), "0123456789");
}

}  // namespace
}  // namespace muster
