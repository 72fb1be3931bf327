// A node's attachment against a relay that the test plays, over real TLS, with real commands.
#include "services/agent/attach/attached_node.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "services/agent/testing/attached_node_fixture.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"
#include "services/common/identity/attach_statement.h"
#include "services/common/identity/verified_chains.h"
#include "services/common/jobs/records_signature.h"
#include "services/common/rpc/proto_time.h"
#include "services/common/rpc/status.h"

namespace muster {
namespace {

TEST_F(AttachedNodeTest, StatementIsSignedForTheGreetingRelay) {
  Begin();
  ASSERT_TRUE(relay_.AwaitHellos(1));
  const v1::AttachRequest::Hello hello = relay_.hellos()[0];
  const Certificate roots[] = {Certificate::FromPem(tree_.root_pem()).value()};
  const auto statement = VerifyAttachStatement(hello.statement(), kTestFleet, roots, absl::Now());
  ASSERT_TRUE(statement.ok()) << statement.status();
  EXPECT_EQ(statement->child.name, Identity::Name(NodeIdentity{kNode}));
  EXPECT_EQ(statement->relay.name, "r1");
  EXPECT_FALSE(hello.is_relay());
  EXPECT_NE(hello.instance_id(), "");
}

TEST_F(AttachedNodeTest, CommandRunsAndItsSignedOutcomeIsReported) {
  Begin();
  ASSERT_TRUE(relay_.AwaitHellos(1));
  const v1::Command command = Send(relay_, {"/bin/echo", "hello"});
  ASSERT_TRUE(relay_.AwaitJob(command.job(), HasFinal));
  EXPECT_EQ(relay_.job(command.job()).out, "hello\n");
  const v1::JobRecord final = relay_.job(command.job()).final_record;
  EXPECT_EQ(final.final().outcome(), v1::JOB_OUTCOME_EXITED);
  const std::vector<Certificate> roots = {Certificate::FromPem(tree_.root_pem()).value()};
  VerifiedChains chains([&] { return roots; }, SystemClock());
  EXPECT_EQ(VerifyFinal(final, kTestFleet, chains), absl::OkStatus());
}

TEST_F(AttachedNodeTest, CancelsRevocationsAndCollectionsAreHandled) {
  Begin();
  ASSERT_TRUE(relay_.AwaitHellos(1));
  const v1::Command command = Send(relay_, {"/bin/sh", "-c", "echo on; exec sleep 1000"});
  ASSERT_TRUE(
      relay_.AwaitJob(command.job(), [](const ReceivedJob& job) { return !job.out.empty(); }));
  v1::AttachResponse message;
  message.mutable_cancel()->set_job(command.job());
  relay_.Send(message);
  ASSERT_TRUE(relay_.AwaitJob(command.job(), HasFinal));
  EXPECT_EQ(relay_.job(command.job()).final->outcome(), v1::JOB_OUTCOME_CANCELLED);
  *message.mutable_revocations() = commands_.Revoke("alice", 1);
  relay_.Send(message);
  const v1::Command refused = Send(relay_, {"/bin/true"});
  ASSERT_TRUE(relay_.AwaitJob(refused.job(), HasFinal));
  EXPECT_EQ(relay_.job(refused.job()).final->reason(), "OPERATOR_REVOKED");
  message.mutable_collection()->set_run("0123456789abcdef");
  relay_.Send(message);
  message.mutable_collection_ended()->set_run("0123456789abcdef");
  relay_.Send(message);
  ASSERT_TRUE(collections_.Await([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(collections_.mutex) {
    return !collections_.ends.empty();
  }));
  MutexLock lock(collections_.mutex);
  EXPECT_EQ(collections_.offers,
            std::vector<std::string>{"0123456789abcdef at " + relay_.target()});
}

TEST_F(AttachedNodeTest, WelcomeEndsTheCollectionsOfEndedRuns) {
  relay_.ended_runs = {"0123456789abcdef", "00000000000000aa"};
  Begin();
  ASSERT_TRUE(collections_.Await([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(collections_.mutex) {
    return collections_.ends.size() == 2;
  }));
  MutexLock lock(collections_.mutex);
  EXPECT_EQ(collections_.ends, relay_.ended_runs);
}

TEST_F(AttachedNodeTest, EachNewStreamButNoOtherWelcomeIsAnAttachment) {
  Begin();
  ASSERT_TRUE(relay_.AwaitHellos(1));
  v1::AttachResponse again;
  again.mutable_welcome()->mutable_interval()->set_seconds(10);
  again.mutable_welcome()->add_path("r1");
  again.mutable_welcome()->add_ended_runs("0123456789abcdef");  // shows that it is handled
  relay_.Send(again);
  EXPECT_TRUE(collections_.Await([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(collections_.mutex) {
    return collections_.ends.size() == 1;
  }));
  {
    MutexLock lock(collections_.mutex);
    EXPECT_EQ(collections_.attachments, 1);
  }
  relay_.Stop();
  relay_.Start();
  EXPECT_TRUE(collections_.Await([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(collections_.mutex) {
    return collections_.attachments == 2;
  }));
}

TEST_F(AttachedNodeTest, RelayWithTheKeyOfAnotherGetsNoStatement) {
  relay_.spoil_greeting = [](v1::AttachResponse::Greeting& greeting) {
    greeting.mutable_key_sha256()->at(0) ^= 1;
  };
  other_.Start();
  Begin();
  ASSERT_TRUE(other_.AwaitHellos(1));  // it tried the next relay
  EXPECT_TRUE(relay_.hellos().empty());
}

TEST_F(AttachedNodeTest, NodeAttachesToTheNextRelayIfOneRefuses) {
  relay_.judge = [] {
    return ToGrpc(MakeError(absl::StatusCode::kResourceExhausted, "TOO_MANY_CHILDREN", "full", ""));
  };
  other_.Start();
  Begin();
  ASSERT_TRUE(other_.AwaitHellos(1));
  const v1::Command command = Send(other_, {"/bin/echo", "hello"});
  ASSERT_TRUE(other_.AwaitJob(command.job(), HasFinal));
}

TEST_F(AttachedNodeTest, NodeReattachesAfterARestartOfTheRelay) {
  Begin();
  ASSERT_TRUE(relay_.AwaitHellos(1));
  relay_.Stop();
  relay_.Start();
  ASSERT_TRUE(relay_.AwaitHellos(2));
  EXPECT_EQ(relay_.hellos()[0].instance_id(), relay_.hellos()[1].instance_id());
  const v1::Command command = Send(relay_, {"/bin/echo", "again"});
  ASSERT_TRUE(relay_.AwaitJob(command.job(), HasFinal));
}

// Each time the only channel of this process is released.
TEST_F(AttachedNodeTest, RepeatedAttachmentsSucceed) {
  for (int i = 1; i <= 50; ++i) {
    Begin();
    ASSERT_TRUE(relay_.AwaitHellos(i));
    End();
  }
}

TEST_F(AttachedNodeTest, UnackedRecordsAreSentAgainOnTheNextStream) {
  Begin();
  ASSERT_TRUE(relay_.AwaitHellos(1));
  relay_.acknowledges = false;
  const v1::Command command =
      Send(relay_, {"/bin/sh", "-c", "yes 0123456789 | head -c 300000; echo end >&2"});
  ASSERT_TRUE(relay_.AwaitJob(command.job(),
                              [](const ReceivedJob& job) { return job.out.size() > 30'000; }));
  EXPECT_LE(relay_.job(command.job()).out.size(), 64 * 1024);
  relay_.acknowledges = true;
  relay_.CutStream();
  ASSERT_TRUE(relay_.AwaitJob(command.job(), HasFinal));
  EXPECT_EQ(relay_.job(command.job()).out.size(), 300'004);
  EXPECT_EQ(relay_.job(command.job()).final->stdout_bytes(), 300'000);
}

TEST_F(AttachedNodeTest, JobContinuesWhileItsNodeIsDetached) {
  Begin();
  ASSERT_TRUE(relay_.AwaitHellos(1));
  const v1::Command command =
      Send(relay_, {"/bin/sh", "-c",
                    "echo on; while [ ! -e " + folder_ + "/go ]; do sleep 0.01; done; echo off"});
  ASSERT_TRUE(
      relay_.AwaitJob(command.job(), [](const ReceivedJob& job) { return !job.out.empty(); }));
  relay_.Stop();
  std::ofstream(folder_ + "/go").put('\n');
  relay_.Start();
  ASSERT_TRUE(relay_.AwaitJob(command.job(), HasFinal));
  EXPECT_EQ(relay_.job(command.job()).out, "on\noff\n");
}

TEST_F(AttachedNodeTest, SilentRelayIsDetached) {
  relay_.interval_ms = 1'000;
  relay_.heartbeats = false;
  Begin();
  ASSERT_TRUE(relay_.AwaitHeartbeats(1));
  other_.Start();
  ASSERT_TRUE(relay_.AwaitHellos(2));  // three intervals without a word
}

TEST_F(AttachedNodeTest, HeartbeatsFollowTheIntervalOfTheRelay) {
  relay_.interval_ms = 200;
  Begin();
  ASSERT_TRUE(relay_.AwaitHeartbeats(10));
  EXPECT_EQ(relay_.hellos().size(), 1);
}

TEST_F(AttachedNodeTest, IdleNodeSendsHeartbeats) {
  relay_.interval_ms = 1'000;
  Begin();
  ASSERT_TRUE(relay_.AwaitHeartbeats(3));
  EXPECT_EQ(relay_.hellos().size(), 1);
}

TEST_F(AttachedNodeTest, RepeatedGreetingIsAnsweredWithTheNewestCertificate) {
  Begin();
  ASSERT_TRUE(relay_.AwaitHellos(1));
  tree_.WriteIdentity(folder_ + "/tls", kNode, absl::Minutes(10));
  relay_.GreetAgain();
  ASSERT_TRUE(relay_.AwaitHellos(2));
  EXPECT_LT(FromProto(relay_.hellos()[1].statement().expire_time()),
            absl::Now() + absl::Minutes(11));
}

TEST_F(AttachedNodeTest, StatementIsRenewedAtHalfOfItsValidity) {
  tree_.WriteIdentity(folder_ + "/tls", kNode, absl::Seconds(4));
  Begin();
  ASSERT_TRUE(relay_.AwaitHellos(2));
}

TEST_F(AttachedNodeTest, StopReportsTheOutcomesOfCommands) {
  Begin();
  ASSERT_TRUE(relay_.AwaitHellos(1));
  const v1::Command command = Send(relay_, {"/bin/sh", "-c", "echo on; exec sleep 1000"});
  ASSERT_TRUE(
      relay_.AwaitJob(command.job(), [](const ReceivedJob& job) { return !job.out.empty(); }));
  node_->Stop(absl::Milliseconds(1), absl::Minutes(1));
  End();
  EXPECT_EQ(relay_.job(command.job()).final->reason(), "AGENT_STOPPED");
}

TEST_F(AttachedNodeTest, MessagesBeyondTheQueueArriveWhenItHasSpace) {
  collections_.SetBlocked(true);
  Begin();
  ASSERT_TRUE(relay_.AwaitHellos(1));
  v1::AttachResponse message;
  message.mutable_collection()->set_run("0123456789abcdef");
  message.mutable_collection()->add_plugins()->set_definition_yaml(
      std::string(size_t{256} << 10, 'x'));
  constexpr size_t kMessages = 100;  // 25 MiB
  std::jthread sender([&] {
    for (size_t i = 0; i < kMessages; ++i) EXPECT_TRUE(relay_.Send(message));
  });
  ASSERT_TRUE(collections_.Await([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(collections_.mutex) {
    return !collections_.offers.empty();
  }));
  collections_.SetBlocked(false);
  ASSERT_TRUE(collections_.Await([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(collections_.mutex) {
    return collections_.offers.size() == kMessages;
  }));
}

TEST_F(AttachedNodeTest, QueuedMessagesHaveNoEffectAfterStop) {
  collections_.SetBlocked(true);
  Begin();
  ASSERT_TRUE(relay_.AwaitHellos(1));
  v1::AttachResponse message;
  message.mutable_collection()->set_run("0123456789abcdef");
  for (int i = 0; i < 1'000; ++i) relay_.Send(message);
  message.mutable_welcome()->mutable_interval()->set_seconds(10);
  message.mutable_welcome()->add_path("r1");
  message.mutable_welcome()->add_ended_runs("0123456789abcdef");  // shows that it is handled
  relay_.Send(message);
  ASSERT_TRUE(collections_.Await([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(collections_.mutex) {
    return !collections_.offers.empty();
  }));
  node_->Stop(absl::ZeroDuration(), absl::ZeroDuration());
  collections_.SetBlocked(false);
  ASSERT_TRUE(collections_.Await([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(collections_.mutex) {
    return !collections_.ends.empty();
  }));
  MutexLock lock(collections_.mutex);
  EXPECT_EQ(collections_.offers.size(), 1);
}

}  // namespace
}  // namespace muster
