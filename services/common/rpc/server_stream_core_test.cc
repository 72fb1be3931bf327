#include "services/common/rpc/server_stream_core.h"

#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/fake_clock.h"
#include "services/common/rpc/testing/explorer.h"
#include "services/common/rpc/testing/server_stream_model.h"

namespace muster {
namespace {

using testing::InHalfClose;
using testing::InMessage;
using testing::InWritable;
using testing::Policy;
using testing::StreamRun;
using testing::Tasks;
using testing::TestStream;
using testing::Trace;

std::vector<Policy> AllPolicies() {
  std::vector<Policy> policies;
  for (const auto message : {InMessage::kNothing, InMessage::kReadNext, InMessage::kReadAndSend,
                             InMessage::kEnd, InMessage::kCancel, InMessage::kSendLast}) {
    for (const auto writable : {InWritable::kNothing, InWritable::kSendAndNotify}) {
      for (const auto half_close : {InHalfClose::kNothing, InHalfClose::kEnd}) {
        for (const auto tasks : {Tasks::kInline, Tasks::kExecutor, Tasks::kRefusingExecutor}) {
          policies.push_back({message, writable, half_close, tasks});
        }
      }
    }
  }
  return policies;
}

template <typename Choices>
void Walk(const Policy& policy, Choices choices) {
  while (choices.Next()) {
    StreamRun run(policy);
    while (choices.More() && run.trace.ends == 0) run.Step(choices);
    if (run.trace.ends == 0) run.Conclude();
    run.Check();
    ASSERT_FALSE(::testing::Test::HasFailure());
  }
}

TEST(ServerStreamCoreTest, EveryOrderOfEventsEndsOnce) {
  for (const Policy& policy : AllPolicies()) {
    ASSERT_NO_FATAL_FAILURE(Walk(policy, testing::Explorer(3)));
  }
  for (const auto tasks : {Tasks::kInline, Tasks::kExecutor}) {
    ASSERT_NO_FATAL_FAILURE(
        Walk({InMessage::kReadAndSend, InWritable::kSendAndNotify, InHalfClose::kNothing, tasks},
             testing::Explorer(5)));
  }
}

TEST(ServerStreamCoreTest, LongRandomOrdersOfEventsEndOnce) {
  for (const Policy& policy : AllPolicies()) {
    ASSERT_NO_FATAL_FAILURE(Walk(policy, testing::RandomWalk(/*runs=*/300, /*depth=*/60)));
  }
}

TEST(ServerStreamCoreTest, SilentPeerIsEndedAtTheDeadline) {
  StreamRun run({});
  run.ReadNext();
  run.clock.Advance(absl::Seconds(10));
  EXPECT_EQ(run.trace.finished, 1);
  EXPECT_EQ(ReasonOf(run.trace.final), "NO_FIRST_MESSAGE");
  run.Conclude();
}

TEST(ServerStreamCoreTest, FirstMessageEndsTheWait) {
  StreamRun run({});
  run.ReadNext();
  run.ReadOk();
  EXPECT_EQ(run.clock.waiting_timers(), 0u);
  run.clock.Advance(absl::Minutes(1));
  EXPECT_EQ(run.trace.finished, 0);
  run.Conclude();
}

TEST(ServerStreamCoreTest, StreamWithoutATimerIsRefused) {
  FakeClock clock(absl::Now(), /*max_timers=*/0);
  Trace trace;
  const auto stream = std::make_shared<TestStream>(Policy{}, trace, &clock);
  stream->Start();
  EXPECT_EQ(ReasonOf(trace.final), "TOO_MANY_TIMERS");
  stream->Done();
}

TEST(ServerStreamCoreTest, NothingIsReadWithoutADemand) {
  StreamRun run({});
  EXPECT_FALSE(run.trace.read_out);
  run.ReadNext();
  run.ReadOk();
  EXPECT_EQ(run.trace.messages, 1);
  EXPECT_FALSE(run.trace.read_out);
  run.Conclude();
}

TEST(ServerStreamCoreTest, FullQueueRefusesAndAsksAgain) {
  StreamRun run({.tasks = Tasks::kInline});
  EXPECT_EQ(run.stream().Send(), Sent::kQueued);
  EXPECT_EQ(run.stream().Send(), Sent::kQueued);
  EXPECT_EQ(run.stream().Send(), Sent::kFull);
  EXPECT_EQ(run.trace.writables, 0);
  run.WriteOk();
  EXPECT_EQ(run.trace.writables, 1);
  run.WriteOk();
  EXPECT_EQ(run.trace.writables, 1);
  run.Conclude();
}

TEST(ServerStreamCoreTest, EndSendsWhatIsQueued) {
  StreamRun run({});
  run.Send();
  run.Send();
  run.EndSend();
  EXPECT_EQ(run.trace.finished, 0);
  run.WriteOk();
  EXPECT_EQ(run.trace.finished, 0);
  run.WriteOk();
  EXPECT_EQ(run.trace.finished, 1);
  EXPECT_EQ(run.trace.delivered.size(), 2u);
  run.Done();
}

TEST(ServerStreamCoreTest, EndMayDropWhatIsQueued) {
  StreamRun run({});
  run.Send();
  run.Send();
  run.EndDrop();
  EXPECT_EQ(run.trace.finished, 0);
  run.WriteOk();
  EXPECT_EQ(run.trace.finished, 1);
  EXPECT_EQ(run.trace.delivered.size(), 1u);
  run.Done();
}

TEST(ServerStreamCoreTest, LastMessageGoesOutWithTheStatus) {
  StreamRun run({});
  run.SendLast();
  EXPECT_FALSE(run.trace.write_out);
  EXPECT_EQ(run.trace.finished, 1);
  EXPECT_EQ(run.trace.delivered.size(), 1u);
  run.Done();
}

TEST(ServerStreamCoreTest, CancelDoesNotWaitForAMessageThatIsBeingSent) {
  StreamRun run({});
  run.Send();
  run.Send();
  run.Cancel();
  EXPECT_TRUE(run.trace.cancelled_here);
  run.WriteFails();
  EXPECT_EQ(run.trace.finished, 1);
  EXPECT_EQ(run.trace.final, absl::AbortedError("enough"));
  run.Done();
  EXPECT_EQ(run.trace.by, EndedBy::kThisSide);
}

TEST(ServerStreamCoreTest, CancelAfterEndReplacesAStatusThatHadMessagesBeforeIt) {
  StreamRun run({});
  run.Send();
  run.EndSend();
  run.Cancel();
  run.WriteFails();
  EXPECT_EQ(run.trace.final, absl::AbortedError("enough"));
  run.Done();
}

TEST(ServerStreamCoreTest, MessageReadBeforeACancellationIsDelivered) {
  StreamRun run({.tasks = Tasks::kExecutor});
  run.ReadNext();
  run.ReadOk();
  run.PeerCancels();
  EXPECT_EQ(run.trace.finished, 0);
  run.RunTask();
  EXPECT_EQ(run.trace.messages, 1);
  EXPECT_EQ(run.trace.finished, 1);
  run.Conclude();
  EXPECT_EQ(run.trace.by, EndedBy::kPeer);
}

TEST(ServerStreamCoreTest, CancelledStreamSendsNothingMore) {
  StreamRun run({});
  run.Send();
  run.Send();
  run.PeerCancels();
  run.WriteOk();
  EXPECT_EQ(run.trace.started.size(), 1u);
  EXPECT_EQ(run.trace.finished, 1);
  run.Done();
}

TEST(ServerStreamCoreTest, CallIsNotFinishedWhileACallbackIsDue) {
  StreamRun run({.half_close = InHalfClose::kNothing, .tasks = Tasks::kExecutor});
  run.ReadNext();
  run.ReadFails();
  run.PeerCancels();
  EXPECT_EQ(run.trace.finished, 0);
  run.RunTask();
  EXPECT_EQ(run.trace.half_closes, 1);
  EXPECT_EQ(run.trace.finished, 1);
  run.Conclude();
}

TEST(ServerStreamCoreTest, RefusingExecutorEndsTheStreamAsOverloaded) {
  StreamRun run({.tasks = Tasks::kRefusingExecutor});
  run.trace.refused_tasks = 1;  // the next is refused
  run.ReadNext();
  run.ReadOk();
  EXPECT_EQ(ReasonOf(run.trace.final), "OVERLOADED");
  EXPECT_EQ(run.trace.messages, 0);
  run.trace.refused_tasks = 1;
  run.Done();
  EXPECT_EQ(run.trace.ends, 1);
}

}  // namespace
}  // namespace muster
