// Tests the small parts of a sender: digest, compression, back-off, types, verdicts.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>

#include "absl/time/clock.h"
#include "services/client/attempt_state.h"
#include "services/client/chunk_compressor.h"
#include "services/client/content_digest.h"
#include "services/client/delivery.h"
#include "services/client/media_type.h"
#include "services/common/base/backoff.h"
#include "services/common/base/error.h"
#include "services/common/base/zstd_frame.h"
#include "services/common/errors/client.h"
#include "services/common/errors/relay.h"
#include "services/common/errors/results.h"
#include "services/common/errors/runs.h"

namespace muster::client {
namespace {

TEST(ContentDigestTest, RepeatedBytesAreDigestedOnce) {
  ContentDigest in_order;
  in_order.Add(0, "123456789");
  EXPECT_EQ(in_order.crc32c(), 0xE3069283U);
  ContentDigest again;
  again.Add(0, "12345");
  again.Add(0, "123");
  const std::string halfway = again.Sha256();
  again.Add(3, "456789");
  EXPECT_EQ(again.position(), 9);
  EXPECT_EQ(again.crc32c(), in_order.crc32c());
  EXPECT_EQ(again.Sha256(), in_order.Sha256());
  EXPECT_NE(again.Sha256(), halfway);
}

TEST(ChunkCompressorTest, TextIsCompressedAndNoiseIsSkipped) {
  ChunkCompressor compressor;
  std::string frame;
  const std::string text(100'000, 'a');
  ASSERT_TRUE(compressor.Compress(text, &frame));
  std::string back;
  ASSERT_TRUE(DecompressFrame(frame, text.size(), &back).ok());
  EXPECT_EQ(back, text);

  std::mt19937_64 random(1);
  std::string noise(100'000, '\0');
  for (char& byte : noise) byte = static_cast<char>(random());
  EXPECT_FALSE(compressor.Compress(noise, &frame));
  EXPECT_FALSE(compressor.Compress(text, &frame)) << "the next one is left out";
  EXPECT_TRUE(compressor.Compress(text, &frame)) << "and then it tries again";
}

TEST(AttemptStateTest, OldStateIsRemovedUnlessItIsInUse) {
  namespace fs = std::filesystem;
  const std::string folder = ::testing::TempDir() + "/attempts";
  fs::remove_all(folder);
  const auto open = [&](std::string_view plugin) {
    auto state = AttemptState::Open(folder, "0123456789abcdef", plugin, "n1").value();
    EXPECT_TRUE(state->Begin("content").ok());
    return state;
  };
  const auto in_use = open("used");
  open("unused");
  for (const auto& entry : fs::directory_iterator(folder)) {
    fs::last_write_time(entry.path(), fs::file_time_type::clock::now() - std::chrono::days(41));
  }
  open("new");
  const auto exists = [&](std::string_view plugin, const char* suffix) {
    return fs::exists(folder + "/" + StateName("0123456789abcdef", plugin, "n1") + suffix);
  };
  EXPECT_TRUE(exists("used", ".json") && exists("used", ".json.lock"));
  EXPECT_FALSE(exists("unused", ".json") || exists("unused", ".json.lock"));
  EXPECT_TRUE(exists("new", ".json"));
}

TEST(AttemptStateTest, OldestOfTooManyStatesIsRemoved) {
  namespace fs = std::filesystem;
  const std::string folder = ::testing::TempDir() + "/many_attempts";
  fs::remove_all(folder);
  const auto open = [&](std::string_view plugin) {
    return AttemptState::Open(folder, "0123456789abcdef", plugin, "n1").value();
  };
  const auto path = [&](std::string_view plugin, const char* suffix) {
    return folder + "/" + StateName("0123456789abcdef", plugin, "n1") + suffix;
  };
  EXPECT_TRUE(open("old")->Begin("content").ok());
  open("unbegun");
  for (const auto& entry : fs::directory_iterator(folder)) {
    fs::last_write_time(entry.path(), fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  for (size_t i = 2; i < kMaxStates; ++i) std::ofstream(path(std::to_string(i), ".json"));
  fs::last_write_time(path("old", ".json"),
                      fs::file_time_type::clock::now() - std::chrono::hours(2));
  fs::last_write_time(path("old", ".json.lock"),
                      fs::file_time_type::clock::now() - std::chrono::hours(2));
  open("new");
  EXPECT_FALSE(fs::exists(path("old", ".json")) || fs::exists(path("old", ".json.lock")));
  EXPECT_TRUE(fs::exists(path("unbegun", ".json.lock")));
  open("newest");
  EXPECT_FALSE(fs::exists(path("unbegun", ".json.lock")));
  EXPECT_TRUE(fs::exists(path("2", ".json")));
}

TEST(AttemptStateTest, NextNumberIsAtLeastTheGivenOneAndSurvivesARestart) {
  const std::string folder = ::testing::TempDir() + "/later_attempts";
  std::filesystem::remove_all(folder);
  const auto open = [&] {
    return AttemptState::Open(folder, "0123456789abcdef", "facts", "n1").value();
  };
  const int64_t now = absl::GetCurrentTimeNanos();
  {
    const auto state = open();
    EXPECT_EQ(state->Begin("content").value(), 1);
    EXPECT_EQ(state->Next().value(), 2);
    EXPECT_EQ(state->Next(now).value(), now);
    EXPECT_EQ(state->Next(now).value(), now + 1);
  }
  EXPECT_EQ(open()->Begin("content").value(), now + 1);
}

TEST(AttemptStateTest, NumberOfAClockThatWasAheadIsNotUsedAgain) {
  const std::string folder = ::testing::TempDir() + "/future_attempts";
  std::filesystem::remove_all(folder);
  const auto open = [&] {
    return AttemptState::Open(folder, "0123456789abcdef", "facts", "n1").value();
  };
  {
    const auto state = open();
    ASSERT_TRUE(state->Begin("content").ok());
    ASSERT_TRUE(state->Next(absl::ToUnixNanos(absl::Now() + absl::Hours(48))).ok());
  }
  EXPECT_EQ(open()->Begin("content").value(), 1);
}

TEST(BackoffTest, DelayGrowsWithFullJitterToThirtySeconds) {
  Backoff backoff(1);
  absl::Duration longest;
  for (int i = 0; i < 200; ++i) {
    const absl::Duration wait = backoff.Next({});
    EXPECT_GE(wait, absl::ZeroDuration());
    EXPECT_LE(wait, i == 0 ? absl::Milliseconds(500) : absl::Seconds(30));
    longest = std::max(longest, wait);
  }
  EXPECT_GT(longest, absl::Seconds(20));
  backoff.Reset();
  EXPECT_LE(backoff.Next({}), absl::Milliseconds(500));
}

TEST(BackoffTest, DelayIsAtLeastTheServersDelay) {
  Backoff backoff(2);
  for (int i = 0; i < 50; ++i) {
    const absl::Duration wait = backoff.Next(absl::Seconds(5));
    EXPECT_GE(wait, absl::Seconds(5));
    EXPECT_LE(wait, absl::Seconds(10));
  }
}

TEST(MediaTypeTest, TypeFollowsFromTheExtension) {
  EXPECT_EQ(MediaTypeOf("results.tar.gz"), "application/gzip");
  EXPECT_EQ(MediaTypeOf("facts.json"), "application/json");
  EXPECT_EQ(MediaTypeOf("noending"), "");
  EXPECT_EQ(MediaTypeOf("odd.thing"), "");
}

NextMove After(absl::Status status, bool opened = true) {
  TryOutcome outcome;
  outcome.receipt = std::move(status);
  outcome.opened = opened;
  return Judge(outcome);
}

// Returns the given outcomes in turn, and the last one again and again.
class FakeTransport final : public ResultTransport {
 public:
  explicit FakeTransport(std::vector<TryOutcome> outcomes) : outcomes_(std::move(outcomes)) {}
  TryOutcome Try(OutgoingResult&, const std::stop_token&) override {
    TryOutcome outcome = outcomes_.front();
    if (outcomes_.size() > 1) outcomes_.erase(outcomes_.begin());
    return outcome;
  }

 private:
  std::vector<TryOutcome> outcomes_;
};

absl::StatusOr<CommitReceipt> DeliverBy(std::vector<TryOutcome> outcomes) {
  FakeTransport transport(std::move(outcomes));
  auto attempts = AttemptState::Open("", "0123456789abcdef", "facts", "n1").value();
  OutgoingResult result({}, nullptr);
  return DeliverUntilCommitted(transport, result, *attempts, absl::Now() + absl::Minutes(1), {});
}

TEST(DeliveryTest, NotAttachedIsTemporaryAfterARelaySpooledTheResult) {
  const auto with_retry = [](const absl::Status& status) {
    return WithRetryAfter(status, absl::Milliseconds(1));
  };
  TryOutcome spooled;
  spooled.receipt = with_retry(errors::ResultSpooled("r1", absl::InfiniteFuture()));
  spooled.spooled = true;
  TryOutcome detached;
  detached.receipt = with_retry(errors::NoLiveStatement("n1", "root"));
  TryOutcome committed;
  committed.receipt = CommitReceipt{.generation = 1};
  const auto receipt = DeliverBy({spooled, detached, committed});
  ASSERT_TRUE(receipt.ok()) << receipt.status();
  EXPECT_EQ(receipt->generation, 1);
  EXPECT_EQ(ReasonOf(DeliverBy({detached, committed}).status()), "NOT_ATTACHED");
}

TEST(JudgeTest, ErrorsMapToTheirNextMove) {
  EXPECT_EQ(After(absl::UnavailableError("")), NextMove::kRetry);
  EXPECT_EQ(After(errors::TooManyUploads(1)), NextMove::kRetry);
  EXPECT_EQ(After(errors::UploadStalled()), NextMove::kRetry);
  EXPECT_EQ(After(errors::UploadNotFound("u")), NextMove::kRetry);
  EXPECT_EQ(After(errors::OffsetTooHigh(2, 1)), NextMove::kRetry);
  EXPECT_EQ(After(absl::UnknownError("reset")), NextMove::kRetry);
  EXPECT_EQ(After(errors::TakenOver("u")), NextMove::kRetry);
  EXPECT_EQ(After(errors::StaleAttempt(1, 2), /*opened=*/false), NextMove::kLaterAttempt);
  EXPECT_EQ(After(errors::DigestMismatch()), NextMove::kNewAttempt);
  EXPECT_EQ(After(errors::RunSealed("r")), NextMove::kGiveUp);
  EXPECT_EQ(After(errors::RunNotFound("r")), NextMove::kGiveUp);
  EXPECT_EQ(After(errors::ResultConflict("p", "n")), NextMove::kGiveUp);
  EXPECT_EQ(After(errors::PairNotPlanned("r", "p", "n")), NextMove::kGiveUp);
  EXPECT_EQ(After(errors::InvalidSignature("old")), NextMove::kGiveUp);
}

}  // namespace
}  // namespace muster::client
