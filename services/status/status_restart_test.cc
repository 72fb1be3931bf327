// The status service without its aggregator, and after a restart.
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <string>

#include "gtest/gtest.h"
#include "muster/v1/status.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/status/testing/status_fixture.h"

namespace muster {
namespace {

using testing::PairOf;
using testing::SenderStream;
using testing::TestIdentity;

class StatusRestartTest : public testing::StatusFixture {};

TEST_F(StatusRestartTest, StatusContinuesWithoutTheAggregatorAndCatchesUp) {
  // The same port again: the status service has no other way to find it.
  fleet_.config.listen.port = static_cast<uint16_t>(fleet_.port());
  const std::string run = CreateRun({"n1", "n2"});
  const TestIdentity n1 = fleet_.Credential(run, "hostfacts", "n1");
  fleet_.Stop();
  ASSERT_TRUE(Report(n1, Progress(run, "n1")).ok());
  EXPECT_EQ(PairOf(*status_.Get(run), "n1").progress().completed(), 4);
  fleet_.Start();
  Deliver(run, "n1");
  Deliver(run, "n2");
  const v1::RunStatus end = status_.Await(
      run, [](const v1::RunStatus& s) { return s.state() == v1::RUN_STATE_COMPLETE; });
  EXPECT_EQ(end.counts().genuine(), 2);
  EXPECT_EQ(end.counts().pending(), 0);
  EXPECT_EQ(end.counts().planned(), 2);
}

TEST_F(StatusRestartTest, PairsOfAnEndedRunAreReadFromTheAggregatorAfterARestart) {
  fleet_.config.listen.port = static_cast<uint16_t>(fleet_.port());
  const std::string run = CreateRun({"n1", "n2"});
  ASSERT_TRUE(Report(fleet_.Credential(run, "hostfacts", "n2"), Progress(run, "n2")).ok());
  Deliver(run, "n1");
  Cancel(run);
  const v1::RunStatus before = status_.Await(
      run, [](const v1::RunStatus& s) { return s.state() == v1::RUN_STATE_CANCELLED; });
  status_.Stop();
  status_.Start();

  fleet_.Stop();
  const absl::Status down = status_.Get(run).status();
  EXPECT_EQ(ReasonOf(down), "PAIRS_NOT_LOADED") << down;
  EXPECT_TRUE(absl::IsUnavailable(down)) << down;
  fleet_.Start();

  const v1::RunStatus after = status_.Await(run, [](const v1::RunStatus&) { return true; });
  EXPECT_EQ(after.counts().SerializeAsString(), before.counts().SerializeAsString());
  EXPECT_EQ(PairOf(after, "n1").outcome(), v1::OUTCOME_GENUINE);
  EXPECT_EQ(PairOf(after, "n1").update_time().ShortDebugString(),
            PairOf(before, "n1").update_time().ShortDebugString());
  EXPECT_EQ(PairOf(after, "n2").reason(), v1::REASON_RUN_ENDED);
  EXPECT_EQ(PairOf(after, "n2").progress().completed(), 4) << "from the store of this service";
}

TEST_F(StatusRestartTest, WatcherOfAnEndedRunGetsItsPairsAndTheEnd) {
  const std::string run = CreateRun({"n1"});
  Deliver(run, "n1");
  status_.Await(run, [](const v1::RunStatus& s) { return s.state() == v1::RUN_STATE_COMPLETE; });
  status_.Stop();
  status_.Start();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  v1::WatchStatusRequest request;
  request.set_run(run);
  const auto stub = v1::StatusService::NewStub(status_.Connect(fleet_.admin()));
  const auto stream = stub->WatchStatus(&context, request);
  v1::WatchStatusResponse message;
  int pairs = 0;
  while (stream->Read(&message)) pairs += message.pairs_size();
  const grpc::Status end = stream->Finish();
  EXPECT_TRUE(end.ok()) << end.error_message();
  EXPECT_EQ(pairs, 1);
}

TEST_F(StatusRestartTest, ProgressAndContactsSurviveARestart) {
  const std::string run = CreateRun({"n1", "n2"});
  const TestIdentity node = fleet_.Issue(NodeIdentity{"n1"});
  {
    SenderStream stream(status_.Connect(node), "n1");
    ASSERT_TRUE(stream.Send(run, "hostfacts", v1::PHASE_WORKING));
    ASSERT_TRUE(Report(node, Progress(run, "n1")).ok());
    // Kept within a tick of a second; what a stop writes counts as well.
    status_.Stop();
  }
  Deliver(run, "n2");
  status_.Start();
  const v1::RunStatus after = *status_.Get(run);
  EXPECT_EQ(after.counts().genuine(), 1) << "what happened meanwhile is caught up with";
  const v1::PairStatus n1 = PairOf(after, "n1");
  EXPECT_EQ(n1.progress().completed(), 4);
  EXPECT_EQ(n1.reason(), v1::REASON_RUNNING) << n1.ShortDebugString();
  EXPECT_EQ(n1.presence(), v1::PRESENCE_UNKNOWN) << "not lost: the service has just started";
}

}  // namespace
}  // namespace muster
