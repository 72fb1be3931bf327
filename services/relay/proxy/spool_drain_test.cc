#include "services/relay/proxy/spool_drain.h"

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/executor.h"
#include "services/common/base/mutex.h"
#include "services/common/blob/blob_test_util.h"
#include "services/common/errors/base.h"
#include "services/common/errors/identity.h"
#include "services/common/errors/relay.h"
#include "services/common/errors/results.h"
#include "services/common/errors/runs.h"
#include "services/common/errors/store.h"
#include "services/common/errors/system.h"
#include "services/relay/testing/spool_fixture.h"
#include "services/relay/testing/stub_upstream.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::SpoolFixture;
using testing::StubUpstream;

// Answers as the test says, and notes what it was asked for.
// Thread-safe.
class FakeSender final : public ResultSender {
 public:
  absl::Status Deliver(const SpoolDelivery& delivery, const std::stop_token&) override {
    return Note("deliver ", delivery, answer);
  }
  absl::Status ReportExpired(const SpoolDelivery& delivery, const std::stop_token&) override {
    return Note("expired ", delivery, report_answer);
  }
  std::vector<std::string> calls() const {
    MutexLock lock(mutex_);
    return calls_;
  }

  absl::Status answer;
  absl::Status report_answer;

 private:
  absl::Status Note(const std::string& what, const SpoolDelivery& delivery, absl::Status status) {
    MutexLock lock(mutex_);
    calls_.push_back(absl::StrCat(what, delivery.header.description().key().node()));
    return status;
  }

  mutable Mutex mutex_;
  std::vector<std::string> calls_ ABSL_GUARDED_BY(mutex_);
};

class SpoolDrainTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fixture_.Open().ok());
    drain_.emplace(SpoolDrain::Environment{fixture_.spool(), upstream_, sender_, fixture_.clock,
                                           fixture_.clock, deliveries_, background_});
  }
  void TearDown() override { drain_.reset(); }

  // Advances the clock and waits for the tasks that it starts.
  void Advance(absl::Duration by) {
    fixture_.clock.Advance(by);
    background_.AwaitIdle();
    deliveries_.AwaitIdle();
  }

  absl::Duration RunOnce() { return drain_->RunOnce(std::stop_token()); }
  static std::string Outcome(const std::string& outcome) {
    return absl::StrCat("muster_relay_spool_outcomes_total{outcome=\"", outcome, "\"} 1\n");
  }

  SpoolFixture fixture_;
  StubUpstream upstream_;
  FakeSender sender_;
  Executor deliveries_{{"deliver", SpoolDrain::kLanes, 16}};
  Executor background_{{"background", 1, 16}};
  std::optional<SpoolDrain> drain_;
};

TEST_F(SpoolDrainTest, ResultIsDeliveredOnceAndRemoved) {
  ASSERT_TRUE(fixture_.Deliver("n1", "facts", "body").ok());
  EXPECT_EQ(RunOnce(), absl::ZeroDuration());
  EXPECT_THAT(sender_.calls(), ElementsAre("deliver n1"));
  EXPECT_GT(RunOnce(), absl::ZeroDuration());
  EXPECT_EQ(sender_.calls().size(), 1u);
  EXPECT_THAT(fixture_.Metric(), HasSubstr(Outcome("committed")));
  EXPECT_THAT(fixture_.Metric(), HasSubstr("muster_relay_spool_entries 0\n"));
}

TEST_F(SpoolDrainTest, NothingIsDeliveredWithoutUpstreamConnection) {
  ASSERT_TRUE(fixture_.Deliver("n1", "facts", "body").ok());
  upstream_.SetConnected(false);
  EXPECT_GT(RunOnce(), absl::ZeroDuration());
  EXPECT_THAT(sender_.calls(), IsEmpty());
  upstream_.SetConnected(true);
  RunOnce();
  EXPECT_THAT(sender_.calls(), ElementsAre("deliver n1"));
}

TEST_F(SpoolDrainTest, TemporaryErrorIsRepeatedAfterAWait) {
  ASSERT_TRUE(fixture_.Deliver("n1", "facts", "body").ok());
  sender_.answer = absl::ResourceExhaustedError("overloaded");
  EXPECT_EQ(RunOnce(), absl::ZeroDuration());
  RunOnce();
  EXPECT_EQ(sender_.calls().size(), 1u) << "repeated without a wait";
  fixture_.clock.Advance(absl::Seconds(5));
  sender_.answer = absl::OkStatus();
  RunOnce();
  EXPECT_THAT(sender_.calls(), ElementsAre("deliver n1", "deliver n1"));
  EXPECT_THAT(fixture_.Metric(), HasSubstr(Outcome("committed")));
}

// The clock of the relay is ahead, or that of the aggregator is behind.
TEST_F(SpoolDrainTest, ResultOfAWrongClockIsDeliveredLater) {
  ASSERT_TRUE(fixture_.Deliver("n1", "facts", "body").ok());
  sender_.answer = errors::ProofTooOld();
  RunOnce();
  EXPECT_THAT(fixture_.Metric(), HasSubstr("muster_relay_spool_entries 1\n"));
  fixture_.clock.Advance(absl::Minutes(1));
  sender_.answer = absl::OkStatus();
  RunOnce();
  EXPECT_THAT(sender_.calls(), ElementsAre("deliver n1", "deliver n1"));
  EXPECT_THAT(fixture_.Metric(), HasSubstr(Outcome("committed")));
}

TEST_F(SpoolDrainTest, ExpiredResultOfAWrongClockIsRemoved) {
  ASSERT_TRUE(fixture_.Deliver("n1", "facts", "body").ok());
  fixture_.clock.Advance(absl::Hours(25));
  sender_.report_answer = errors::ProofTooOld();
  RunOnce();
  EXPECT_THAT(sender_.calls(), ElementsAre("expired n1"));
  EXPECT_THAT(fixture_.Metric(), HasSubstr("muster_relay_spool_entries 0\n"));
}

// The operator may raise the limit of the run.
TEST_F(SpoolDrainTest, ResultOfAFullRunIsRepeated) {
  ASSERT_TRUE(fixture_.Deliver("n1", "facts", "body").ok());
  sender_.answer = errors::RunFull("r", 10, 1, 10);
  RunOnce();
  EXPECT_EQ(fixture_.spool().waiting(), 1);
  fixture_.clock.Advance(absl::Minutes(1));
  sender_.answer = absl::OkStatus();
  RunOnce();
  EXPECT_THAT(fixture_.Metric(), HasSubstr(Outcome("committed")));
}

TEST_F(SpoolDrainTest, WaitsGrowWithEachFailureUntilTheUpstreamChanges) {
  constexpr size_t kNodes = 40;
  for (size_t i = 0; i < kNodes; ++i) {
    ASSERT_TRUE(fixture_.Deliver(absl::StrCat("n", i), "facts", "body").ok());
  }
  sender_.answer = absl::ResourceExhaustedError("overloaded");
  const auto deliver_due = [this] {
    const size_t before = sender_.calls().size();
    while (RunOnce() == absl::ZeroDuration()) {
    }
    return sender_.calls().size() - before;
  };
  EXPECT_EQ(deliver_due(), kNodes);
  for (int i = 0; i < 5; ++i) {
    fixture_.clock.Advance(absl::Seconds(30));
    EXPECT_EQ(deliver_due(), kNodes);
  }
  fixture_.clock.Advance(absl::Seconds(5));
  EXPECT_LT(deliver_due(), kNodes);
  upstream_.SetConnected(false);
  upstream_.SetConnected(true);
  EXPECT_EQ(deliver_due(), kNodes);
}

TEST_F(SpoolDrainTest, NodeDeliversWhatTheRelayCouldNotDeliver) {
  ASSERT_TRUE(fixture_.Deliver("n1", "facts", "body").ok());
  const auto holds = [this] {
    return fixture_.spool().Holds(SpoolFixture::Request("n1", "facts", "body").description());
  };
  sender_.answer = errors::RelayCutOff();
  RunOnce();
  EXPECT_TRUE(holds()) << "without a connection the node cannot deliver either";
  fixture_.clock.Advance(absl::Minutes(1));
  sender_.answer = errors::ProofTooOld();
  RunOnce();
  EXPECT_EQ(sender_.calls().size(), 2u);
  EXPECT_FALSE(holds());
}

TEST_F(SpoolDrainTest, UnavailableUpstreamHoldsUpAllResults) {
  ASSERT_TRUE(fixture_.Deliver("n1", "facts", "body").ok());
  ASSERT_TRUE(fixture_.Deliver("n2", "facts", "body").ok());
  sender_.answer = errors::RelayCutOff();
  EXPECT_GT(RunOnce(), absl::ZeroDuration());
}

TEST_F(SpoolDrainTest, RejectedResultIsRemoved) {
  ASSERT_TRUE(fixture_.Deliver("n1", "facts", "body").ok());
  sender_.answer = errors::InvalidSignature("another key");
  EXPECT_EQ(RunOnce(), absl::ZeroDuration());
  EXPECT_THAT(fixture_.Metric(), HasSubstr(Outcome("refused")));
  RunOnce();
  EXPECT_EQ(sender_.calls().size(), 1u);
}

// All that the aggregator answers about the result itself.
TEST_F(SpoolDrainTest, EachRejectionOfTheResultRemovesIt) {
  const std::vector<absl::Status> rejections = {errors::InvalidName("n 1", "node", "a space"),
                                                errors::SignatureUnverified("another key"),
                                                errors::PairNotPlanned("r", "facts", "n1"),
                                                errors::ResultConflict("facts", "n1"),
                                                errors::ResultOverLimit(1),
                                                errors::SignerRevoked(),
                                                errors::RunCancelled("r"),
                                                errors::RunNotFound("r"),
                                                errors::RunSealed("r"),
                                                errors::SignatureRequired("n1"),
                                                errors::TextTooLong("file_name", 1)};
  for (const absl::Status& rejection : rejections) {
    ASSERT_TRUE(fixture_.Deliver("n1", "facts", "body").ok());
    sender_.answer = rejection;
    RunOnce();
    EXPECT_EQ(fixture_.spool().waiting(), 0) << rejection;
  }
}

TEST_F(SpoolDrainTest, ErrorThatConcernsTheRelayOrADiskKeepsTheResult) {
  ASSERT_TRUE(fixture_.Deliver("n1", "facts", "body").ok());
  const std::vector<absl::Status> temporary = {
      errors::NotAttached("n1"),
      errors::AttachStatementRefused("it is for another relay"),
      absl::PermissionDeniedError("from a service that does not know this relay yet"),
      errors::FileNotAccessible("open", "blobs/staged/1", "Permission denied"),
      errors::FileExists("publish", "blobs/1", "File exists"),
      errors::BlobExists("1", 2, 3),
      errors::InvalidChunk("the upload is already complete")};
  for (const absl::Status& error : temporary) {
    sender_.answer = error;
    RunOnce();
    EXPECT_EQ(fixture_.spool().waiting(), 1) << error;
    fixture_.clock.Advance(absl::Minutes(1));
  }
  EXPECT_EQ(sender_.calls().size(), temporary.size());
}

TEST_F(SpoolDrainTest, DamagedResultIsReportedAsLost) {
  ASSERT_TRUE(fixture_.Deliver("n1", "logs", Pattern(200'000)).ok());
  fixture_.DamageBlobs();
  sender_.answer = errors::CrcMismatch("whole");
  EXPECT_EQ(RunOnce(), absl::ZeroDuration());
  EXPECT_THAT(sender_.calls(), ElementsAre("deliver n1", "expired n1"));
  EXPECT_THAT(fixture_.Metric(), HasSubstr(Outcome("lost")));
  EXPECT_THAT(fixture_.Metric(), HasSubstr("muster_relay_spool_entries 0\n"));
}

TEST_F(SpoolDrainTest, LossIsReportedLaterIfAClockIsWrong) {
  ASSERT_TRUE(fixture_.Deliver("n1", "logs", Pattern(200'000)).ok());
  fixture_.DamageBlobs();
  sender_.answer = errors::CrcMismatch("whole");
  sender_.report_answer = errors::ProofTooOld();
  RunOnce();
  EXPECT_THAT(fixture_.Metric(), HasSubstr("muster_relay_spool_entries 1\n"));
  fixture_.clock.Advance(absl::Minutes(1));
  sender_.report_answer = absl::OkStatus();
  RunOnce();
  EXPECT_THAT(sender_.calls(), ElementsAre("deliver n1", "expired n1", "deliver n1", "expired n1"));
  EXPECT_THAT(fixture_.Metric(), HasSubstr(Outcome("lost")));
}

TEST_F(SpoolDrainTest, ResultThatWasDamagedOnItsWayIsSentAgain) {
  ASSERT_TRUE(fixture_.Deliver("n1", "logs", Pattern(200'000)).ok());
  sender_.answer = errors::CrcMismatch("whole");
  RunOnce();
  EXPECT_THAT(sender_.calls(), ElementsAre("deliver n1"));
  fixture_.clock.Advance(absl::Seconds(5));
  sender_.answer = absl::OkStatus();
  RunOnce();
  EXPECT_THAT(fixture_.Metric(), HasSubstr(Outcome("committed")));
}

TEST_F(SpoolDrainTest, CompleteResultIsDeliveredWithoutAWait) {
  drain_->Start();
  Advance(absl::ZeroDuration());
  EXPECT_THAT(sender_.calls(), IsEmpty());
  ASSERT_TRUE(fixture_.Deliver("n1", "facts", "body").ok());
  Advance(absl::ZeroDuration());
  EXPECT_THAT(sender_.calls(), ElementsAre("deliver n1"));
}

TEST_F(SpoolDrainTest, ResultsAreDeliveredOnceTheUpstreamIsConnected) {
  upstream_.SetConnected(false);
  for (const char* node : {"n1", "n2", "n3", "n4"}) {
    ASSERT_TRUE(fixture_.Deliver(node, "facts", "body").ok());
  }
  drain_->Start();
  Advance(absl::Seconds(10));
  EXPECT_THAT(sender_.calls(), IsEmpty());
  upstream_.SetConnected(true);
  Advance(absl::ZeroDuration());
  EXPECT_EQ(sender_.calls().size(), 4u);
}

TEST_F(SpoolDrainTest, NewResultsDoNotEndTheWaitForAnUnavailableUpstream) {
  sender_.answer = errors::RelayCutOff();
  drain_->Start();
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(fixture_.Deliver(absl::StrCat("n", i), "facts", "body").ok());
    Advance(absl::ZeroDuration());
  }
  EXPECT_EQ(sender_.calls().size(), 1u);
  Advance(absl::Seconds(1));
  EXPECT_GT(sender_.calls().size(), 1u);
  sender_.answer = absl::OkStatus();
  upstream_.SetConnected(true);
  Advance(absl::ZeroDuration());
  EXPECT_THAT(fixture_.Metric(), HasSubstr("muster_relay_spool_entries 0\n"));
}

TEST_F(SpoolDrainTest, SweepRemovesIdleUploads) {
  ASSERT_TRUE(fixture_.OpenUpload(SpoolFixture::Request("n1", "facts", "body")).ok());
  drain_->Start();
  Advance(fixture_.options.idle_after - absl::Seconds(4));
  EXPECT_THAT(fixture_.Metric(), HasSubstr("muster_relay_spool_entries 1\n"));
  for (int i = 0; i < 12; ++i) Advance(absl::Seconds(1));
  EXPECT_THAT(fixture_.Metric(), HasSubstr("muster_relay_spool_entries 0\n"));
}

TEST_F(SpoolDrainTest, ExpiredResultIsReported) {
  ASSERT_TRUE(fixture_.Deliver("n1", "facts", "body").ok());
  fixture_.clock.Advance(fixture_.options.ttl + absl::Hours(1));
  RunOnce();
  EXPECT_THAT(sender_.calls(), ElementsAre("expired n1"));
  EXPECT_THAT(fixture_.Metric(), HasSubstr(Outcome("expired")));
}

}  // namespace
}  // namespace muster
