#include "services/common/rpc/client_stream_core.h"

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/rpc/testing/client_stream_model.h"
#include "services/common/rpc/testing/explorer.h"

namespace muster {
namespace {

using testing::ClientPolicy;
using testing::ClientRun;
using testing::OnAnswer;
using testing::OnRoom;

std::vector<ClientPolicy> AllPolicies() {
  std::vector<ClientPolicy> policies;
  for (const auto answer : {OnAnswer::kNothing, OnAnswer::kReadNext, OnAnswer::kReadAndSend,
                            OnAnswer::kHalfClose, OnAnswer::kCancel}) {
    for (const auto room : {OnRoom::kNothing, OnRoom::kSend}) {
      for (const bool on_executor : {false, true}) policies.push_back({answer, room, on_executor});
    }
  }
  return policies;
}

template <typename Choices>
void Walk(const ClientPolicy& policy, Choices choices) {
  while (choices.Next()) {
    ClientRun run(policy);
    while (choices.More() && run.trace.ends == 0) run.Step(choices);
    if (run.trace.ends == 0) run.Conclude();
    run.Check();
    ASSERT_FALSE(::testing::Test::HasFailure());
  }
}

TEST(ClientStreamCoreTest, EveryOrderOfEventsEndsOnce) {
  for (const ClientPolicy& policy : AllPolicies()) {
    ASSERT_NO_FATAL_FAILURE(Walk(policy, testing::Explorer(3)));
  }
  for (const bool on_executor : {false, true}) {
    ASSERT_NO_FATAL_FAILURE(
        Walk({OnAnswer::kReadAndSend, OnRoom::kNothing, on_executor}, testing::Explorer(5)));
  }
}

TEST(ClientStreamCoreTest, LongRandomOrdersOfEventsEndOnce) {
  for (const ClientPolicy& policy : AllPolicies()) {
    ASSERT_NO_FATAL_FAILURE(Walk(policy, testing::RandomWalk(/*runs=*/500, /*depth=*/60)));
  }
}

TEST(ClientStreamCoreTest, SilentServerIsCancelledAtTheDeadline) {
  ClientRun run({});
  run.ReadNext();
  run.clock.Advance(absl::Seconds(10));
  EXPECT_TRUE(run.trace.cancelled);
  run.ReadFails();
  run.DoneOk();
  EXPECT_EQ(ReasonOf(run.trace.end), "NO_FIRST_MESSAGE");
  EXPECT_EQ(run.trace.by, EndedBy::kThisSide);
}

TEST(ClientStreamCoreTest, HalfCloseFollowsWhatIsQueued) {
  ClientRun run({});
  run.Send();
  run.Send();
  run.HalfClose();
  EXPECT_EQ(run.stream().Send(), Sent::kEnded);
  run.WriteOk();
  EXPECT_TRUE(run.trace.half_closed);  // with the last message
  EXPECT_FALSE(run.trace.half_close_out);
  run.WriteOk();
  EXPECT_EQ(run.trace.started.size(), 2u);
  run.Conclude();
}

TEST(ClientStreamCoreTest, HalfCloseOfAnIdleStreamGoesAlone) {
  ClientRun run({});
  run.Send();
  run.HalfClose();
  EXPECT_FALSE(run.trace.half_close_out);
  run.WriteOk();
  EXPECT_TRUE(run.trace.half_close_out);
  run.Conclude();
}

TEST(ClientStreamCoreTest, LastMessageHalfCloses) {
  ClientRun run({});
  run.SendLast();
  EXPECT_TRUE(run.trace.half_closed);
  run.Conclude();
}

TEST(ClientStreamCoreTest, AnswersAreReadAfterAWriteFailed) {
  ClientRun run({.answer = OnAnswer::kReadNext});
  run.ReadNext();
  run.Send();
  run.WriteFails();
  EXPECT_FALSE(run.trace.closed);
  EXPECT_EQ(run.stream().Send(), Sent::kEnded);
  run.ReadOk();
  EXPECT_EQ(run.trace.messages, 1);
  run.ReadFails();
  run.DoneAborted();
  EXPECT_EQ(run.trace.end, absl::InternalError("said the server"));
}

TEST(ClientStreamCoreTest, ErrorOfTheServerWinsOverACancellation) {
  ClientRun run({});
  run.ReadNext();
  run.Cancel();
  run.ReadFails();
  run.DoneAborted();
  EXPECT_EQ(run.trace.end, absl::InternalError("said the server"));
  EXPECT_EQ(run.trace.by, EndedBy::kPeer);
}

TEST(ClientStreamCoreTest, CancelAfterTheServersEndKeepsItsStatus) {
  ClientRun run({});
  run.ReadNext();
  run.ReadFails();
  run.Cancel();
  run.DoneOk();
  EXPECT_TRUE(run.trace.end.ok());
  EXPECT_EQ(run.trace.by, EndedBy::kPeer);
}

// A peer sent bytes that are no message, and leaves the call open.
TEST(ClientStreamCoreTest, CallIsEndedIfItStaysOpenAfterAnUnreadableMessage) {
  ClientRun run({});
  run.ReadNext();
  run.ReadFails();
  EXPECT_FALSE(run.trace.cancelled);
  run.EndIsLate();
  EXPECT_TRUE(run.trace.cancelled);
  run.DoneCancelled();
  EXPECT_EQ(ReasonOf(run.trace.end), "UNREADABLE_ANSWER");
  EXPECT_EQ(run.trace.by, EndedBy::kThisSide);
}

TEST(ClientStreamCoreTest, CancelAfterAnUnreadableMessageEndsTheCall) {
  ClientRun run({});
  run.ReadNext();
  run.ReadFails();
  run.Cancel();
  EXPECT_TRUE(run.trace.cancelled);
  run.DoneCancelled();
  EXPECT_EQ(run.trace.by, EndedBy::kThisSide);
}

TEST(ClientStreamCoreTest, OnWritableFollowsEachSentMessage) {
  ClientRun run({});
  run.Send();
  EXPECT_EQ(run.trace.writables, 0);
  run.WriteOk();
  EXPECT_EQ(run.trace.writables, 1);
  run.Conclude();
}

}  // namespace
}  // namespace muster
