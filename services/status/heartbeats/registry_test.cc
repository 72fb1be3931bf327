// Streams, sequences and records of the registry.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/status/heartbeats/testing/registry_fixture.h"

namespace muster {
namespace {

using RegistryTest = testing::RegistryFixture;

TEST_F(RegistryTest, SenderAfterGoodbyeIsOffline) {
  Stream stream = Open(1);
  registry_->Goodbye(stream.stream_ref);
  registry_->Closed(stream.stream_ref, true);
  Pass(300);
  EXPECT_EQ(stream.sender->presence(), v1::PRESENCE_OFFLINE);
  EXPECT_EQ(stream.sender->evidence(), Evidence::kNone);
}

TEST_F(RegistryTest, HeartbeatOutOfOrderIsIgnored) {
  Stream stream = Open(1);
  Registry::Answer answer;
  EXPECT_TRUE(registry_->IsNews(stream.stream_ref, 2, &answer));
  registry_->HandleHeartbeat(stream.stream_ref, 7, absl::ZeroDuration());
  EXPECT_FALSE(registry_->IsNews(stream.stream_ref, 7, &answer));
  EXPECT_EQ(answer.sequence, 7);
  EXPECT_FALSE(registry_->IsNews(stream.stream_ref, 3, &answer));
  EXPECT_NE(metrics_->Text().find("muster_heartbeats_total{result=\"out_of_order\"} 2"),
            std::string::npos);
  // The numbers continue on a new connection of the process; a new process starts again.
  Stream again = *TryOpen(1);
  EXPECT_FALSE(registry_->IsNews(again.stream_ref, 7, &answer));
  Stream fresh = *TryOpen(1, "i2");
  EXPECT_TRUE(registry_->IsNews(fresh.stream_ref, 0, &answer));
}

TEST_F(RegistryTest, NewStreamOfAProcessReplacesTheOldOne) {
  Stream old = Open(1);
  Stream fresh = Open(1);
  EXPECT_EQ(old.sender, fresh.sender);
  EXPECT_EQ(old.line->ended.code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(fresh.sender->duplicate_agent());
  registry_->Closed(old.stream_ref, true);  // too late to matter
  Pass(2);
  EXPECT_EQ(fresh.sender->evidence(), Evidence::kNone);
}

TEST_F(RegistryTest, StreamsOfAProcessForTwoPairsAreIndependent) {
  Stream p = Open(1, "i1", absl::ZeroDuration(), "r/p");
  Stream q = Open(1, "i1", absl::ZeroDuration(), "r/q");
  EXPECT_EQ(p.sender, q.sender);
  EXPECT_TRUE(p.line->ended.ok());
  // The streams share a counter of sequences, and their heartbeats may arrive in another order.
  Registry::Answer answer;
  registry_->HandleHeartbeat(q.stream_ref, 9, absl::ZeroDuration());
  EXPECT_TRUE(registry_->IsNews(p.stream_ref, 8, &answer));
  EXPECT_EQ(registry_->HandleHeartbeat(p.stream_ref, 8, absl::ZeroDuration()).sequence, 8);
  EXPECT_FALSE(registry_->IsNews(q.stream_ref, 8, &answer));
  EXPECT_EQ(answer.sequence, 9);
  // Either one keeps the sender online.
  PassWithHeartbeats(100, {&p});
  PassWithHeartbeats(100, {&q});
  EXPECT_EQ(listener_.seen, std::vector<v1::Presence>{v1::PRESENCE_ONLINE});
}

TEST_F(RegistryTest, GoodbyeOfOneStreamLeavesTheSenderOnline) {
  Stream p = Open(1, "i1", absl::ZeroDuration(), "r/p");
  Stream q = Open(1, "i1", absl::ZeroDuration(), "r/q");
  registry_->Goodbye(q.stream_ref);
  registry_->Closed(q.stream_ref, true);
  registry_->SetFinished(p.sender);
  PassWithHeartbeats(100, {&p});
  EXPECT_EQ(p.sender->presence(), v1::PRESENCE_ONLINE);
  EXPECT_EQ(p.sender->evidence(), Evidence::kNone);
  registry_->Goodbye(p.stream_ref);
  EXPECT_EQ(p.sender->presence(), v1::PRESENCE_OFFLINE);
}

TEST_F(RegistryTest, LastStreamThatClosesIsEvidence) {
  Stream p = Open(1, "i1", absl::ZeroDuration(), "r/p");
  Stream q = Open(1, "i1", absl::ZeroDuration(), "r/q");
  registry_->Closed(q.stream_ref, true);
  Pass(2);
  EXPECT_EQ(p.sender->evidence(), Evidence::kNone);
  registry_->Closed(p.stream_ref, true);
  Pass(2);
  EXPECT_EQ(p.sender->evidence(), Evidence::kClosed);
}

TEST_F(RegistryTest, RevocationIsEvidenceOnceTheLastStreamHasEnded) {
  Stream p = Open(1, "i1", absl::ZeroDuration(), "r/p");
  Stream q = Open(1, "i1", absl::ZeroDuration(), "r/q");
  registry_->Revoked(p.stream_ref);
  EXPECT_EQ(p.sender->evidence(), Evidence::kNone);
  registry_->Revoked(q.stream_ref);
  EXPECT_EQ(p.sender->evidence(), Evidence::kRevoked);
}

TEST_F(RegistryTest, AllStreamsOfTheOlderProcessAreEnded) {
  Stream p = Open(1, "i1", absl::Seconds(100), "r/p");
  Stream q = Open(1, "i1", absl::Seconds(100), "r/q");
  Stream young = Open(1, "i2", absl::Seconds(5), "r/p");
  EXPECT_EQ(ReasonOf(p.line->ended), "DUPLICATE_AGENT");
  EXPECT_EQ(ReasonOf(q.line->ended), "DUPLICATE_AGENT");
  Pass(5);
  SendHeartbeat(q);
  EXPECT_EQ(young.sender->last_seen(), clock_.MonotonicNow() - absl::Seconds(5));
}

TEST_F(RegistryTest, StreamsOfAProcessAreBounded) {
  for (size_t i = 0; i < SenderStreams::kMaxOpen; ++i) {
    ASSERT_TRUE(TryOpen(1, "i1", absl::ZeroDuration(), absl::StrCat("r/p", i)).ok());
  }
  EXPECT_EQ(ReasonOf(TryOpen(1, "i1", absl::ZeroDuration(), "r/q").status()),
            "TOO_MANY_STREAMS_OF_CALLER");
}

TEST_F(RegistryTest, OlderOfTwoProcessesIsEnded) {
  Stream old = Open(1, "i1", absl::Seconds(100));
  Stream young = Open(1, "i2", absl::Seconds(5));
  EXPECT_EQ(ReasonOf(old.line->ended), "DUPLICATE_AGENT");
  EXPECT_TRUE(young.sender->duplicate_agent());
  EXPECT_EQ(young.sender->evidence(), Evidence::kNone);
  // The older comes back, and is the older still.
  EXPECT_EQ(ReasonOf(TryOpen(1, "i1", absl::Seconds(101)).status()), "DUPLICATE_AGENT");
  EXPECT_TRUE(young.line->ended.ok());
  EXPECT_EQ(journal_.details["n1"].size(), 2) << "one event for all of its attempts";
  PassWithHeartbeats(179, {&young});
  EXPECT_TRUE(young.sender->duplicate_agent());
  PassWithHeartbeats(15, {&young});
  EXPECT_FALSE(young.sender->duplicate_agent());
}

TEST_F(RegistryTest, GoodbyeOfOneOfTwoProcessesLeavesTheOtherOnline) {
  Stream old = Open(1, "i1", absl::Seconds(100));
  Stream young = Open(1, "i2", absl::Seconds(5));
  ASSERT_EQ(ReasonOf(old.line->ended), "DUPLICATE_AGENT");
  registry_->Goodbye(young.stream_ref);
  registry_->Closed(young.stream_ref, true);
  Pass(15);
  EXPECT_EQ(old.sender->presence(), v1::PRESENCE_ONLINE);
  Stream again = Open(1, "i1", absl::Seconds(115));
  EXPECT_EQ(again.sender->presence(), v1::PRESENCE_ONLINE);
  PassWithHeartbeats(200, {&again});
  EXPECT_FALSE(again.sender->duplicate_agent());
  registry_->Goodbye(again.stream_ref);
  EXPECT_EQ(again.sender->presence(), v1::PRESENCE_OFFLINE);
}

// The goodbye is the end, if the process that was rejected does not return.
TEST_F(RegistryTest, GoodbyeIsOfflineAfterTheTimeOfTheOtherProcess) {
  Stream old = Open(1, "i1", absl::Seconds(100));
  Stream young = Open(1, "i2", absl::Seconds(5));
  registry_->Goodbye(young.stream_ref);
  registry_->Closed(young.stream_ref, true);
  Pass(89);
  EXPECT_EQ(old.sender->presence(), v1::PRESENCE_ONLINE);
  Pass(5);
  EXPECT_EQ(old.sender->presence(), v1::PRESENCE_OFFLINE);
  Pass(200);
  EXPECT_EQ(old.sender->presence(), v1::PRESENCE_OFFLINE);
}

TEST_F(RegistryTest, OtherProcessThatReturnsAndFallsSilentIsLost) {
  Open(1, "i1", absl::Seconds(100));
  Stream young = Open(1, "i2", absl::Seconds(5));
  registry_->Goodbye(young.stream_ref);
  Pass(30);
  Stream again = Open(1, "i1", absl::Seconds(130));
  Pass(200);
  EXPECT_EQ(again.sender->presence(), v1::PRESENCE_LOST);
}

TEST_F(RegistryTest, GoodbyeLongAfterTheOtherProcessIsOffline) {
  Stream old = Open(1, "i1", absl::Seconds(100));
  Stream young = Open(1, "i2", absl::Seconds(5));
  PassWithHeartbeats(95, {&young});  // the other one does not try again
  ASSERT_TRUE(young.sender->duplicate_agent());
  registry_->Goodbye(young.stream_ref);
  EXPECT_EQ(young.sender->presence(), v1::PRESENCE_OFFLINE);
}

TEST_F(RegistryTest, ReturnAfterAGoodbyeIsNoSilence) {
  Stream stream = Open(1);
  registry_->Goodbye(stream.stream_ref);
  Open(1);
  EXPECT_EQ(journal_.details["n1"].back(), "heartbeats started again");
}

TEST_F(RegistryTest, LostSenderIsNotFinished) {
  Stream stream = Open(1);
  registry_->Closed(stream.stream_ref, false);
  Pass(200);
  ASSERT_EQ(stream.sender->presence(), v1::PRESENCE_LOST);
  registry_->SetFinished(stream.sender);
  EXPECT_EQ(stream.sender->presence(), v1::PRESENCE_LOST);
}

TEST_F(RegistryTest, HeartbeatOfAReplacedStreamIsIgnored) {
  Stream old = Open(1, "i1");
  Stream young = Open(1, "i2");
  Pass(5);
  SendHeartbeat(old);
  EXPECT_EQ(young.sender->last_seen(), clock_.MonotonicNow() - absl::Seconds(5));
}

TEST_F(RegistryTest, ProcessThatReplacesADeadOneIsARestart) {
  Stream old = Open(1, "i1");
  registry_->Closed(old.stream_ref, true);
  Pass(3);
  Stream fresh = Open(1, "i2");
  EXPECT_EQ(fresh.sender->restarts(), 1u);
  EXPECT_FALSE(fresh.sender->duplicate_agent());
  SendHeartbeat(fresh);
  EXPECT_EQ(fresh.sender->restarts(), 1u);
  // The restart says nothing about a later silence.
  EXPECT_EQ(fresh.sender->evidence(), Evidence::kNone);
  registry_->Closed(fresh.stream_ref, true);
  EXPECT_EQ(Open(1, "i3").sender->restarts(), 2u);
}

TEST_F(RegistryTest, ProcessAfterAGoodbyeIsNoRestart) {
  Stream old = Open(1, "i1");
  registry_->Goodbye(old.stream_ref);
  EXPECT_EQ(Open(1, "i2").sender->restarts(), 0u);
}

TEST_F(RegistryTest, IntervalGrowsWithTheSenders) {
  options_.target_rate = 5;
  Restart();
  std::vector<Stream> streams;
  for (int i = 0; i < 100; ++i) streams.push_back(Open(i));
  EXPECT_EQ(registry_->Interval(), absl::Seconds(20));
  EXPECT_EQ(SendHeartbeat(streams[0]).interval, absl::Seconds(20));
  Pass(39);
  EXPECT_EQ(streams[0].sender->presence(), v1::PRESENCE_ONLINE);
}

TEST_F(RegistryTest, ChangedSenderIsStoredOnce) {
  Stream a = Open(1);
  Open(2);
  EXPECT_TRUE(registry_->StoreChanged());
  clock_.Advance(absl::Seconds(3));
  SendHeartbeat(a);
  journal_.stored.clear();
  EXPECT_TRUE(registry_->StoreChanged());
  ASSERT_EQ(journal_.stored.size(), 1u);
  const SenderRecord changed = journal_.stored["n1"];
  EXPECT_EQ(changed.last_seen, clock_.Now());
  EXPECT_EQ(changed.presence_since, clock_.Now() - absl::Seconds(3));
  EXPECT_NE(changed.instance, 0);
}

TEST_F(RegistryTest, EvidenceSurvivesACrashOfThisService) {
  Stream stream = Open(1);
  Pass(12);
  registry_->Closed(stream.stream_ref, true);
  Pass(9);
  ASSERT_EQ(stream.sender->presence(), v1::PRESENCE_LATE);
  ASSERT_EQ(stream.sender->evidence(), Evidence::kClosed);
  ASSERT_EQ(journal_.stored.count("n1"), 1u) << "stored without waiting for a batch";
  const SenderRecord record = journal_.stored["n1"];
  EXPECT_EQ(record.evidence, Evidence::kClosed);
  Restart({record});
  const auto known = registry_->Find("spiffe://f/node/n1", "n1");
  ASSERT_NE(known, nullptr);
  EXPECT_EQ(known->presence(), v1::PRESENCE_UNKNOWN);
  EXPECT_EQ(known->evidence(), Evidence::kClosed);
  Pass(95);  // the grace after a start
  EXPECT_EQ(known->evidence(), Evidence::kClosed);
  EXPECT_NE(known->presence(), v1::PRESENCE_UNKNOWN);
  Stream again = Open(1);
  EXPECT_EQ(again.sender->evidence(), Evidence::kNone);
}

// The batches are a minute apart.
TEST_F(RegistryTest, StartOfHeartbeatsSurvivesACrashOfThisService) {
  Stream earlier = Open(1);
  registry_->Goodbye(earlier.stream_ref);
  EXPECT_TRUE(registry_->StoreChanged());
  ASSERT_EQ(journal_.stored["n1"].presence, v1::PRESENCE_OFFLINE);
  Open(1);
  Restart({journal_.stored["n1"]});
  EXPECT_EQ(registry_->Find("spiffe://f/node/n1", "n1")->presence(), v1::PRESENCE_UNKNOWN);
}

TEST_F(RegistryTest, GoodbyeSurvivesACrashOfThisService) {
  Stream stream = Open(1);
  registry_->Goodbye(stream.stream_ref);
  Restart({journal_.stored["n1"]});
  EXPECT_EQ(registry_->Find("spiffe://f/node/n1", "n1")->presence(), v1::PRESENCE_OFFLINE);
}

TEST_F(RegistryTest, GoodbyeOfTheLastOfTwoProcessesSurvivesACrashOfThisService) {
  Open(1, "i1", absl::Seconds(100));
  Stream young = Open(1, "i2", absl::Seconds(5));
  registry_->Goodbye(young.stream_ref);
  Pass(94);
  ASSERT_EQ(young.sender->presence(), v1::PRESENCE_OFFLINE);
  Restart({journal_.stored["n1"]});
  EXPECT_EQ(registry_->Find("spiffe://f/node/n1", "n1")->presence(), v1::PRESENCE_OFFLINE);
}

TEST_F(RegistryTest, LostSenderKeepsItsEvidence) {
  Stream stream = Open(1);
  registry_->Closed(stream.stream_ref, true);
  Pass(200);
  ASSERT_EQ(stream.sender->presence(), v1::PRESENCE_LOST);
  journal_.stored.clear();
  EXPECT_TRUE(registry_->StoreChanged());
  ASSERT_EQ(journal_.stored.size(), 1u);
  Restart({journal_.stored["n1"]});
  const auto known = registry_->Find("spiffe://f/node/n1", "n1");
  EXPECT_EQ(known->presence(), v1::PRESENCE_LOST);
  EXPECT_EQ(known->evidence(), Evidence::kClosed);
}

TEST_F(RegistryTest, SendersThatTheJournalDoesNotTakeAreStoredLater) {
  std::vector<Stream> streams;
  for (int node = 1; node <= 3; ++node) streams.push_back(Open(node));
  EXPECT_TRUE(registry_->StoreChanged());
  for (Stream& stream : streams) SendHeartbeat(stream);
  journal_.stored.clear();
  journal_.capacity = 2;
  EXPECT_FALSE(registry_->StoreChanged());
  EXPECT_EQ(journal_.stored.size(), 2u);
  EXPECT_TRUE(registry_->StoreChanged());
  EXPECT_EQ(journal_.stored.size(), 3u);
  journal_.stored.clear();
  EXPECT_TRUE(registry_->StoreChanged());
  EXPECT_TRUE(journal_.stored.empty()) << "none has changed";
}

// A record without delay, which the journal did not take, is not lost.
TEST_F(RegistryTest, RevocationThatTheJournalDoesNotTakeIsStoredLater) {
  Stream stream = Open(1);
  EXPECT_TRUE(registry_->StoreChanged());
  journal_.capacity = 0;
  registry_->Revoked(stream.stream_ref);
  journal_.capacity = 1;
  EXPECT_TRUE(registry_->StoreChanged());
  EXPECT_EQ(journal_.stored["n1"].evidence, Evidence::kRevoked);
}

TEST_F(RegistryTest, SenderRejectedAtItsFirstHeartbeatIsForgotten) {
  Stream stream = *TryOpen(1);
  registry_->Closed(stream.stream_ref, false);
  EXPECT_EQ(registry_->Find("spiffe://f/node/n1", "n1"), nullptr);
  registry_->Leave(*registry_->Visit("u", "n1"));
  EXPECT_EQ(registry_->Find("u", "n1"), nullptr);
  Pass(100);
  EXPECT_TRUE(listener_.seen.empty());
}

TEST_F(RegistryTest, HeartbeatWithoutAStreamIsAccepted) {
  const auto stream_ref = registry_->Visit("u", "n1");
  ASSERT_TRUE(stream_ref.ok());
  EXPECT_EQ(registry_->SendHeartbeat(*stream_ref).interval, absl::Seconds(10));
  const auto sender = stream_ref->sender();
  EXPECT_EQ(sender->presence(), v1::PRESENCE_ONLINE);
  Pass(20);
  EXPECT_EQ(sender->presence(), v1::PRESENCE_LATE);
  EXPECT_EQ(sender->evidence(), Evidence::kNone);
  registry_->SendHeartbeat(*registry_->Visit("u", "n1"));
  EXPECT_EQ(sender->presence(), v1::PRESENCE_ONLINE);
  // All that it was for is done, and old clients say no goodbye.
  registry_->SetFinished(sender);
  Pass(300);
  EXPECT_EQ(sender->presence(), v1::PRESENCE_OFFLINE);
}

TEST_F(RegistryTest, EndAllEndsConnectedStreams) {
  Stream there = Open(1);
  Stream other_pair = Open(1, "i1", absl::ZeroDuration(), "r/q");
  Stream gone = Open(2);
  registry_->Closed(gone.stream_ref, true);
  registry_->EndAll(absl::UnavailableError("stopping"));
  EXPECT_EQ(there.line->ended.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(other_pair.line->ended.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(gone.line->ended.ok());
}

TEST_F(RegistryTest, ConnectedSenderIsNotOffline) {
  Stream stream = Open(1);
  registry_->SetFinished(stream.sender);
  EXPECT_EQ(stream.sender->presence(), v1::PRESENCE_ONLINE);
}

}  // namespace
}  // namespace muster
