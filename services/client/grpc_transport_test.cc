#include "services/client/grpc_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "services/client/attempt_state.h"
#include "services/client/delivery.h"
#include "services/client/test_peer.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/results.h"
#include "services/common/errors/runs.h"

namespace muster::client {
namespace {

using ::testing::HasSubstr;

constexpr size_t kMiB = 1024 * 1024;

std::string RandomBytes(size_t size) {
  std::mt19937_64 random(7);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

std::string TextBytes(size_t size) {
  std::string text;
  while (text.size() < size)
    text += "{\"host\":\"node-1\",\"line\":" + std::to_string(text.size()) + "}\n";
  text.resize(size);
  return text;
}

class GrpcTransportTest : public ::testing::Test {
 protected:
  GrpcTransportTest() : folder_(::testing::TempDir() + "/transport_test"), peer_(fleet_) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    peer_.Start();
    UseCredential(fleet_, fleet_.RunCredential("n1"));
  }
  ~GrpcTransportTest() override { std::filesystem::remove_all(folder_); }

  static std::shared_ptr<const Sender> SenderOf(const TestFleet& fleet,
                                                std::pair<std::string, std::string> credential) {
    Config config;
    config.fleet_ca_cert = fleet.root_pem;
    std::tie(config.client_cert, config.client_key) = std::move(credential);
    return Sender::Make(config, absl::Now()).value();
  }

  void UseCredential(const TestFleet& fleet, std::pair<std::string, std::string> credential) {
    transport_ = MakeGrpcTransport({peer_.target()}, SenderOf(fleet, std::move(credential)));
  }

  std::string Write(const std::string& body) {
    const std::string path = folder_ + "/result";
    std::ofstream(path, std::ios::binary) << body;
    return path;
  }

  absl::StatusOr<CommitReceipt> Deliver(const std::string& path, std::stop_token stop = {},
                                        absl::Duration limit = absl::Minutes(2)) {
    ASSIGN_OR_RETURN(auto attempts,
                     AttemptState::Open(folder_ + "/state", fleet_.run, "facts", "n1"));
    ASSIGN_OR_RETURN(auto file, SourceFile::Open(path));
    ResultInfo info{fleet_.run, "facts", "n1"};
    ASSIGN_OR_RETURN(info.attempt, attempts->Begin(file->fingerprint()));
    OutgoingResult result(info, std::move(file));
    return DeliverUntilCommitted(*transport_, result, *attempts, absl::Now() + limit, stop);
  }

  // Makes a single attempt.
  absl::StatusOr<CommitReceipt> Attempt(const std::string& path) {
    ASSIGN_OR_RETURN(auto attempts,
                     AttemptState::Open(folder_ + "/state", fleet_.run, "facts", "n1"));
    ASSIGN_OR_RETURN(auto file, SourceFile::Open(path));
    ResultInfo info{fleet_.run, "facts", "n1"};
    ASSIGN_OR_RETURN(info.attempt, attempts->Begin(file->fingerprint()));
    OutgoingResult result(info, std::move(file));
    return transport_->Try(result, {}).receipt;
  }

  const TestFleet fleet_ = TestFleet::Make();
  const std::string folder_;
  TestPeer peer_;
  std::unique_ptr<ResultTransport> transport_;
};

TEST_F(GrpcTransportTest, SmallResultIsSentInOneCall) {
  const auto receipt = Deliver(Write("hello"));
  ASSERT_TRUE(receipt.ok()) << receipt.status();
  EXPECT_EQ(receipt->generation, 1);
  EXPECT_EQ(peer_.committed()->body, "hello");
  EXPECT_EQ(peer_.opens, 0);
  EXPECT_FALSE(peer_.committed()->signature.empty());
}

TEST_F(GrpcTransportTest, EmptyResultIsDelivered) {
  const auto receipt = Deliver(Write(""));
  ASSERT_TRUE(receipt.ok()) << receipt.status();
  EXPECT_EQ(peer_.committed()->body, "");
}

TEST_F(GrpcTransportTest, LargeResultIsSentInChunksWithinTheWindow) {
  const std::string body = RandomBytes(9 * kMiB + 17);
  peer_.window = kMiB;
  peer_.probe_window = true;
  const auto receipt = Deliver(Write(body));
  ASSERT_TRUE(receipt.ok()) << receipt.status();
  EXPECT_EQ(receipt->size, static_cast<int64_t>(body.size()));
  EXPECT_TRUE(peer_.committed()->body == body);
  EXPECT_FALSE(peer_.committed()->zstd);
  EXPECT_FALSE(peer_.overrun);
}

// A relay that lies must not keep the sender busy.
TEST_F(GrpcTransportTest, TinyChunksOfAServerAreNotUsed) {
  const std::string body = RandomBytes(kMiB);
  peer_.chunk_max = 0;
  EXPECT_EQ(ReasonOf(Deliver(Write(body)).status()), "INVALID_OPEN_RESPONSE");
  peer_.window = 1;
  peer_.chunk_max = 1;
  ASSERT_TRUE(Deliver(Write(body)).ok());
  EXPECT_TRUE(peer_.committed()->body == body);
  EXPECT_LE(peer_.chunks, 256);
}

TEST_F(GrpcTransportTest, TextIsCompressedOnlyIfTheServerSupportsIt) {
  const std::string body = TextBytes(2 * kMiB);
  ASSERT_TRUE(Deliver(Write(body)).ok());
  EXPECT_TRUE(peer_.committed()->body == body);
  EXPECT_TRUE(peer_.committed()->zstd);

  TestPeer plain(fleet_);
  plain.zstd = false;
  plain.Start();
  transport_ = MakeGrpcTransport({plain.target()}, SenderOf(fleet_, fleet_.RunCredential("n1")));
  ASSERT_TRUE(Deliver(Write(body)).ok());
  EXPECT_TRUE(plain.committed()->body == body);
  EXPECT_FALSE(plain.committed()->zstd);
}

TEST_F(GrpcTransportTest, BrokenStreamIsResumed) {
  const std::string body = RandomBytes(3 * kMiB);
  peer_.cut_after = kMiB;
  const auto receipt = Deliver(Write(body));
  ASSERT_TRUE(receipt.ok()) << receipt.status();
  EXPECT_TRUE(peer_.committed()->body == body);
  EXPECT_GE(peer_.opens, 3);
  EXPECT_EQ(peer_.chunk_bytes, static_cast<int64_t>(body.size())) << "bytes were sent again";
}

TEST_F(GrpcTransportTest, UploadSurvivesARestartOfTheServer) {
  const std::string body = RandomBytes(4 * kMiB);
  std::jthread restarter;
  std::atomic<bool> down{false};
  peer_.on_chunk = [&](int64_t offset) {
    if (offset < static_cast<int64_t>(2 * kMiB) || down.exchange(true)) return;
    restarter = std::jthread([this] {
      peer_.Stop();
      peer_.Start();
    });
  };
  const auto receipt = Deliver(Write(body));
  restarter.join();
  ASSERT_TRUE(receipt.ok()) << receipt.status();
  EXPECT_TRUE(peer_.committed()->body == body);
}

// The back-off of gRPC's channel, which begins at 200 ms, must not reject the attempt.
TEST_F(GrpcTransportTest, FirstAttemptAfterARestartOfTheServerSucceeds) {
  for (const size_t size : {size_t{5}, kMiB}) {
    const std::string path = Write(RandomBytes(size));
    peer_.Stop();
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(Attempt(path).ok());
    peer_.Start();
    const auto receipt = Attempt(path);
    EXPECT_TRUE(receipt.ok()) << receipt.status();
    peer_.Forget();
  }
}

TEST_F(GrpcTransportTest, AnotherProcessResumesTheUpload) {
  const std::string body = RandomBytes(3 * kMiB);
  const std::string path = Write(body);
  std::stop_source stop;
  peer_.on_chunk = [&](int64_t offset) {
    if (offset >= static_cast<int64_t>(kMiB)) stop.request_stop();
  };
  const auto first = Deliver(path, stop.get_token());
  ASSERT_FALSE(first.ok());
  EXPECT_EQ(ReasonOf(first.status()), "INTERRUPTED");
  peer_.on_chunk = nullptr;
  UseCredential(fleet_, fleet_.RunCredential("n1"));  // a new process has only the folder
  const auto second = Deliver(path);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(peer_.committed()->body == body);
  EXPECT_EQ(peer_.committed()->description.attempt(), 1);
  EXPECT_EQ(peer_.chunk_bytes, static_cast<int64_t>(body.size())) << "bytes were sent again";
}

TEST_F(GrpcTransportTest, OtherContentIsANewAttempt) {
  std::stop_source stop;
  peer_.on_chunk = [&](int64_t) { stop.request_stop(); };
  peer_.cut_after = 1;  // the rest may be sent before the stop is seen
  ASSERT_FALSE(Deliver(Write(RandomBytes(2 * kMiB)), stop.get_token()).ok());
  peer_.on_chunk = nullptr;
  peer_.cut_after = -1;
  const std::string body = TextBytes(3 * kMiB);
  const auto delivered = Deliver(Write(body));
  ASSERT_TRUE(delivered.ok()) << delivered.status();
  EXPECT_TRUE(peer_.committed()->body == body);
  EXPECT_EQ(peer_.committed()->description.attempt(), 2);
}

// A legacy sidecar, whose gateway numbers attempts by the time, was interrupted.
TEST_F(GrpcTransportTest, DeliveryFollowsASenderThatNumbersAttemptsByTheTime) {
  ResultInfo info{fleet_.run, "facts", "n1"};
  info.attempt = absl::GetCurrentTimeNanos();
  OutgoingResult other(info, SourceFile::Open(Write(RandomBytes(2 * kMiB))).value());
  peer_.cut_after = 1;
  ASSERT_FALSE(transport_->Try(other, {}).receipt.ok());
  peer_.cut_after = -1;
  const std::string body = TextBytes(3 * kMiB);
  const auto delivered = Deliver(Write(body));
  ASSERT_TRUE(delivered.ok()) << delivered.status();
  EXPECT_TRUE(peer_.committed()->body == body);
  EXPECT_GT(peer_.committed()->description.attempt(), info.attempt);
}

// The number of the old sender stays refused: it does not take the upload over again.
TEST_F(GrpcTransportTest, DeliveryFollowsASenderWhoseClockIsAhead) {
  ResultInfo info{fleet_.run, "facts", "n1"};
  info.attempt = absl::ToUnixNanos(absl::Now() + absl::Hours(12));
  const std::string path = Write(RandomBytes(2 * kMiB));
  OutgoingResult old(info, SourceFile::Open(path).value());
  info.attempt += 1;
  OutgoingResult later(info, SourceFile::Open(path).value());
  for (OutgoingResult* const result : {&old, &later}) {
    peer_.cut_after = 1;
    ASSERT_FALSE(transport_->Try(*result, {}).receipt.ok());
  }
  peer_.cut_after = -1;
  const absl::Status refused = transport_->Try(old, {}).receipt.status();
  EXPECT_EQ(ReasonOf(refused), "TAKEN_OVER");
  EXPECT_EQ(NewestAttemptOf(refused), info.attempt);
  const std::string body = TextBytes(3 * kMiB);
  const auto delivered = Deliver(Write(body));
  ASSERT_TRUE(delivered.ok()) << delivered.status();
  EXPECT_TRUE(peer_.committed()->body == body);
  EXPECT_EQ(peer_.committed()->description.attempt(), info.attempt + 1);
}

TEST_F(GrpcTransportTest, DamagedUploadIsSentAgainFromTheBeginning) {
  peer_.damage_digest = 1;
  const std::string body = RandomBytes(kMiB);
  ASSERT_TRUE(Deliver(Write(body)).ok());
  EXPECT_TRUE(peer_.committed()->body == body);
  EXPECT_EQ(peer_.committed()->description.attempt(), 2);
}

TEST_F(GrpcTransportTest, FullServerDelaysTheDelivery) {
  peer_.refuse_opens = 3;
  ASSERT_TRUE(Deliver(Write(RandomBytes(kMiB))).ok());
  EXPECT_EQ(peer_.opens, 4);
}

TEST_F(GrpcTransportTest, SameContentSucceedsAndOtherContentConflicts) {
  const std::string body = RandomBytes(kMiB);
  const std::string path = Write(body);
  ASSERT_TRUE(Deliver(path).ok());
  EXPECT_TRUE(Deliver(path).ok());
  EXPECT_EQ(peer_.chunk_bytes, static_cast<int64_t>(body.size()));
  const auto other = Deliver(Write(TextBytes(kMiB)));  // of the same length, but different
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(ReasonOf(other.status()), "RESULT_CONFLICT");
}

TEST_F(GrpcTransportTest, ChangedFileIsNotDelivered) {
  const std::string path = Write(RandomBytes(3 * kMiB));
  peer_.on_chunk = [&](int64_t offset) {
    if (offset == static_cast<int64_t>(kMiB)) {
      std::fstream(path, std::ios::binary | std::ios::in | std::ios::out) << "other";
    }
  };
  peer_.window = kMiB;
  const auto receipt = Deliver(path);
  ASSERT_FALSE(receipt.ok());
  EXPECT_EQ(ReasonOf(receipt.status()), "SOURCE_CHANGED");
  EXPECT_FALSE(peer_.committed().has_value());
}

TEST_F(GrpcTransportTest, FileThatChangesAfterTheCommitIsDelivered) {
  for (const size_t size : {size_t{5}, kMiB}) {
    const std::string body = RandomBytes(size);
    const std::string path = Write(body);
    peer_.on_commit = [&] { std::ofstream(path, std::ios::binary | std::ios::app) << "more"; };
    const auto receipt = Deliver(path);
    ASSERT_TRUE(receipt.ok()) << receipt.status();
    EXPECT_TRUE(peer_.committed()->body == body);
    peer_.Forget();
  }
}

// The commit is answered at the second open.
TEST_F(GrpcTransportTest, FileThatChangesWhenTheAnswerIsLostIsDelivered) {
  const std::string body = RandomBytes(kMiB);
  const std::string path = Write(body);
  peer_.on_commit = [&] {
    std::ofstream(path, std::ios::binary | std::ios::app) << "more";
    peer_.lose_answers = 1;
  };
  const auto receipt = Deliver(path);
  ASSERT_TRUE(receipt.ok()) << receipt.status();
  EXPECT_EQ(peer_.opens, 2);
}

// The sender was killed after the commit and before it knew, and the run was sealed meanwhile.
TEST_F(GrpcTransportTest, CommittedResultOfASealedRunIsDeliveredOnceMore) {
  const std::string body = RandomBytes(kMiB);
  ASSERT_TRUE(Deliver(Write(body)).ok());
  peer_.sealed = true;
  const auto receipt = Deliver(Write(body));
  EXPECT_TRUE(receipt.ok()) << receipt.status();
  EXPECT_EQ(ReasonOf(Deliver(Write(body + "more")).status()), "RUN_SEALED");
}

TEST_F(GrpcTransportTest, PermanentErrorEndsTheDelivery) {
  int asked = 0;
  peer_.judge = [&] {
    ++asked;
    return errors::RunSealed(fleet_.run);
  };
  const auto receipt = Deliver(Write("late"));
  ASSERT_FALSE(receipt.ok());
  EXPECT_EQ(ReasonOf(receipt.status()), "RUN_SEALED");
  EXPECT_EQ(asked, 1);
}

TEST_F(GrpcTransportTest, ResultOverTheLimitFailsAtOnceAndNamesTheLimit) {
  int asked = 0;
  peer_.judge = [&] {
    ++asked;
    return errors::ResultOverLimit(1'000'000);
  };
  const auto receipt = Deliver(Write("large"));
  EXPECT_EQ(ReasonOf(receipt.status()), "RESULT_TOO_LARGE");
  EXPECT_NE(receipt.status().message().find("1000000"), std::string::npos) << receipt.status();
  EXPECT_EQ(asked, 1);
}

TEST_F(GrpcTransportTest, SenderAtItsShareOfTheDiskTriesAgain) {
  std::atomic<int> asked = 0;
  peer_.judge = [&] {
    if (++asked > 2) return absl::OkStatus();
    return WithRetryAfter(
        errors::TooManyStagedBytes("n1", 1'000'000, "limits.identity_disk_percent"),
        absl::Milliseconds(20));
  };
  const auto receipt = Deliver(Write("later"));
  EXPECT_TRUE(receipt.ok()) << receipt.status();
  EXPECT_EQ(asked, 3);
}

TEST_F(GrpcTransportTest, DeadlineEndsTheDeliveryWithTheLastError) {
  peer_.Stop();
  const auto receipt = Deliver(Write("nobody"), {}, absl::Seconds(2));
  ASSERT_FALSE(receipt.ok());
  EXPECT_EQ(ReasonOf(receipt.status()), "NOT_COMMITTED_IN_TIME");
  EXPECT_THAT(std::string(receipt.status().message()), HasSubstr("last attempt"));
}

TEST_F(GrpcTransportTest, AnotherFleetIsRefusedInTheHandshake) {
  const TestFleet other = TestFleet::Make();
  UseCredential(other, other.RunCredential("n1"));
  const auto receipt = Deliver(Write("stranger"), {}, absl::Seconds(2));
  ASSERT_FALSE(receipt.ok());
  EXPECT_FALSE(peer_.committed().has_value());
}

TEST_F(GrpcTransportTest, SecondProcessForAResultIsRefused) {
  auto first = AttemptState::Open(folder_ + "/state", fleet_.run, "facts", "n1");
  ASSERT_TRUE(first.ok());
  const auto second = AttemptState::Open(folder_ + "/state", fleet_.run, "facts", "n1");
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(ReasonOf(second.status()), "ALREADY_RUNNING");
}

}  // namespace
}  // namespace muster::client
