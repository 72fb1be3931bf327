// The status service as its callers meet it: real mutual TLS, a real feed.
#include <grpcpp/grpcpp.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/v1/results.grpc.pb.h"
#include "muster/v1/runs.grpc.pb.h"
#include "muster/v1/status.grpc.pb.h"
#include "muster/v1/verdicts.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/rpc/status.h"
#include "services/common/rpc/testing/rpc_walk.h"
#include "services/status/testing/status_fixture.h"

namespace muster {
namespace {

using testing::CallWith;
using testing::PairOf;
using testing::SenderStream;
using testing::TestIdentity;

class StatusApiTest : public testing::StatusFixture {};

TEST_F(StatusApiTest, WatcherFollowsARunToItsEnd) {
  const std::string run = CreateRun({"n1", "n2"});
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  v1::WatchStatusRequest request;
  request.set_run(run);
  const auto stub = v1::StatusService::NewStub(status_.Connect(fleet_.admin()));
  const auto stream = stub->WatchStatus(&context, request);
  v1::WatchStatusResponse message;
  ASSERT_TRUE(stream->Read(&message));
  EXPECT_TRUE(message.reset());
  EXPECT_EQ(message.pairs_size(), 2);
  EXPECT_EQ(message.status().counts().pending(), 2);
  EXPECT_NE(message.cursor(), "");
  Deliver(run, "n1");
  bool seen = false;
  while (!seen && stream->Read(&message)) {
    EXPECT_FALSE(message.reset());
    for (const v1::PairStatus& pair : message.pairs()) {
      seen = seen || (pair.node() == "n1" && pair.outcome() == v1::OUTCOME_GENUINE);
    }
  }
  EXPECT_TRUE(seen);
  Deliver(run, "n2");
  v1::RunStatus last;
  while (stream->Read(&message)) {
    if (message.has_status()) last = message.status();
  }
  const grpc::Status end = stream->Finish();
  EXPECT_TRUE(end.ok()) << end.error_message();
  EXPECT_EQ(last.state(), v1::RUN_STATE_COMPLETE);
  EXPECT_DOUBLE_EQ(last.percent_complete(), 1);
  EXPECT_TRUE(last.has_end_time());
}

TEST_F(StatusApiTest, KilledAgentIsCrashedUntilItReturns) {
  const std::string run = CreateRun({"n1", "n2", "n3", "n4", "n5", "n6"});
  const auto channel = status_.Connect(fleet_.Issue(NodeIdentity{"n1"}));
  {
    SenderStream stream(channel, "n1");
    ASSERT_TRUE(stream.Send(run, "hostfacts", v1::PHASE_WORKING));
    const v1::PairStatus working = PairOf(*status_.Get(run), "n1");
    EXPECT_EQ(working.reason(), v1::REASON_RUNNING);
    EXPECT_EQ(working.presence(), v1::PRESENCE_ONLINE);
    EXPECT_TRUE(working.has_heartbeat_age());
  }
  const auto crashed = status_.Await(
      run, [](const v1::RunStatus& s) { return PairOf(s, "n1").reason() == v1::REASON_CRASHED; });
  const v1::PairStatus pair = PairOf(crashed, "n1");
  EXPECT_EQ(pair.reason(), v1::REASON_CRASHED) << pair.ShortDebugString();
  EXPECT_NE(pair.detail().find("without a goodbye"), std::string::npos) << pair.detail();
  EXPECT_NE(pair.next(), "");
  ASSERT_EQ(crashed.stragglers_size(), 1);
  EXPECT_EQ(crashed.stragglers(0).node(), "n1");

  const v1::Node node = AwaitEvent("n1", v1::REASON_CRASHED);
  EXPECT_EQ(node.pairs_size(), 1);
  EXPECT_TRUE(node.has_last_heartbeat());

  SenderStream again(status_.Connect(fleet_.Issue(NodeIdentity{"n1"})), "n1");
  ASSERT_TRUE(again.Send(run, "hostfacts", v1::PHASE_WORKING));
  EXPECT_EQ(PairOf(*status_.Get(run), "n1").reason(), v1::REASON_RUNNING);
}

TEST_F(StatusApiTest, ViewerSeesOnlyItsRun) {
  const std::string mine = CreateRun({"n1"});
  const std::string other = CreateRun({"n1"});
  EXPECT_TRUE(GetAsViewer(mine, mine).ok());
  EXPECT_EQ(ReasonOf(GetAsViewer(mine, other)), "NOT_YOURS");
  // The name that was left out stands for the newest run: another's.
  EXPECT_EQ(ReasonOf(GetAsViewer(mine, "")), "NOT_YOURS");
  EXPECT_TRUE(GetAsViewer(other, "").ok());
  // Only the gateway may name a viewer.
  v1::GetStatusRequest request;
  request.set_run(mine);
  EXPECT_TRUE(
      absl::IsPermissionDenied(status_.Get(fleet_.admin(), request, ViewerUri(mine)).status()));
}

TEST_F(StatusApiTest, RunCredentialSeesItsOwnPair) {
  const std::string run = CreateRun({"n1", "n2"});
  v1::GetStatusRequest request;
  request.set_run(run);
  request.set_page_size(100);
  const auto own = status_.Get(fleet_.Credential(run, "hostfacts", "n1"), request);
  ASSERT_TRUE(own.ok()) << own.status();
  ASSERT_EQ(own->pairs_size(), 1);
  EXPECT_EQ(own->pairs(0).node(), "n1");
  EXPECT_EQ(own->stragglers_size(), 0);
  const auto node = status_.Get(fleet_.Issue(NodeIdentity{"n2"}), request);
  ASSERT_TRUE(node.ok()) << node.status();
  ASSERT_EQ(node->pairs_size(), 1);
  EXPECT_EQ(node->pairs(0).node(), "n2");
  EXPECT_EQ(ReasonOf(status_.Get(fleet_.Issue(NodeIdentity{"n9"}), request).status()),
            "RUN_NOT_FOUND");
  EXPECT_EQ(ReasonOf(Report(fleet_.Credential(run, "hostfacts", "n1"), Progress(run, "n2"))),
            "NOT_YOURS");
}

TEST_F(StatusApiTest, HugeProgressIsTruncatedAndBadProgressIsRejected) {
  const std::string run = CreateRun({"n1"});
  const TestIdentity n1 = fleet_.Credential(run, "hostfacts", "n1");
  v1::ReportProgressRequest progress = Progress(run, "n1");
  progress.set_message(std::string(1 << 20, 'x'));
  ASSERT_TRUE(Report(n1, progress).ok());
  EXPECT_EQ(PairOf(*status_.Get(run), "n1").progress().message().size(), 4096u);
  progress.set_message("<script>alert(1)</script>");
  ASSERT_TRUE(Report(n1, progress).ok());
  EXPECT_EQ(PairOf(*status_.Get(run), "n1").progress().message(), progress.message());
  progress.set_completed(-1);
  EXPECT_EQ(ReasonOf(Report(n1, progress)), "INVALID_PROGRESS");
  progress.set_completed(int64_t{1} << 62);
  EXPECT_EQ(ReasonOf(Report(n1, progress)), "INVALID_PROGRESS");
  EXPECT_EQ(ReasonOf(Report(n1, v1::ReportProgressRequest())), "NOT_YOURS");
  EXPECT_EQ(PairOf(*status_.Get(run), "n1").progress().completed(), 4);
}

TEST_F(StatusApiTest, ProgressThatIsNotUtf8IsCleanedAndMalformedBytesAreRejected) {
  const std::string run = CreateRun({"n1"});
  v1::ReportProgressRequest progress = Progress(run, "n1");
  progress.set_message("QQ");
  std::string bytes = progress.SerializeAsString();
  bytes.replace(bytes.find("QQ"), 2, "\xff\xfe");
  const auto channel = status_.Connect(fleet_.Credential(run, "hostfacts", "n1"));
  const char path[] = "/muster.v1.StatusService/ReportProgress";
  EXPECT_EQ(ReasonOf(FromGrpc(CallWith(channel, path, "\x0a\x7f"))), "INVALID_PROGRESS");
  EXPECT_FALSE(PairOf(*status_.Get(run), "n1").has_progress());
  EXPECT_TRUE(CallWith(channel, path, bytes).ok());
  EXPECT_EQ(PairOf(*status_.Get(run), "n1").progress().message(), "\xef\xbf\xbd\xef\xbf\xbd");
}

TEST_F(StatusApiTest, InventedRunsCursorsAndPagesAreRejected) {
  const std::string run = CreateRun({"n1"});
  v1::GetStatusRequest request;
  request.set_run("ffffffffffffffff");
  EXPECT_EQ(ReasonOf(status_.Get(fleet_.admin(), request).status()), "RUN_NOT_FOUND");
  request.set_run(run);
  request.set_page_size(10'001);
  EXPECT_EQ(ReasonOf(status_.Get(fleet_.admin(), request).status()), "INVALID_PAGE_SIZE");
  request.set_page_size(-1);
  EXPECT_EQ(ReasonOf(status_.Get(fleet_.admin(), request).status()), "INVALID_PAGE_SIZE");
  request.set_page_size(10);
  request.set_page_token("invented");
  EXPECT_EQ(ReasonOf(status_.Get(fleet_.admin(), request).status()), "INVALID_PAGE_TOKEN");
  v1::WatchStatusRequest watch;
  watch.set_cursor("invented");
  grpc::ClientContext context;
  v1::WatchStatusResponse message;
  const auto stub = v1::StatusService::NewStub(status_.Connect(fleet_.admin()));
  const auto stream = stub->WatchStatus(&context, watch);
  EXPECT_FALSE(stream->Read(&message));
  EXPECT_EQ(ReasonOf(FromGrpc(stream->Finish())), "INVALID_CURSOR");
}

TEST_F(StatusApiTest, NodesAreShownToOperatorsOnly) {
  CreateRun({"n1", "n2"});
  v1::ListNodesRequest request;
  request.set_page_size(1);
  const auto list = [&](const TestIdentity& identity) {
    grpc::ClientContext context;
    v1::ListNodesResponse response;
    const grpc::Status status = v1::StatusService::NewStub(status_.Connect(identity))
                                    ->ListNodes(&context, request, &response);
    return status.ok() ? absl::StatusOr<v1::ListNodesResponse>(response) : FromGrpc(status);
  };
  const auto page = list(fleet_.admin());
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->nodes_size(), 1);
  EXPECT_EQ(page->nodes(0).node(), "n1");
  request.set_page_token(page->next_page_token());
  EXPECT_EQ(list(fleet_.admin())->nodes(0).node(), "n2");
  request.set_page_token("<b>");
  EXPECT_EQ(ReasonOf(list(fleet_.admin()).status()), "INVALID_PAGE_TOKEN");
  EXPECT_TRUE(absl::IsPermissionDenied(list(fleet_.Issue(NodeIdentity{"n1"})).status()));
}

TEST_F(StatusApiTest, AggregatorReceivesTheStartGraceVerdict) {
  v1::CreateRunRequest create;
  create.add_plugins("hostfacts");
  create.add_nodes("n1");
  create.mutable_start_grace()->set_seconds(1);
  v1::Run run;
  grpc::ClientContext creating;
  const grpc::Status created =
      v1::RunService::NewStub(fleet_.Connect(fleet_.admin()))->CreateRun(&creating, create, &run);
  ASSERT_TRUE(created.ok()) << created.error_message();
  const auto stub = v1::VerdictService::NewStub(
      status_.Connect(fleet_.Issue(ServiceIdentity{ServiceRole::kAggregator, "other"})));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  const auto stream = stub->FollowVerdicts(&context, {});
  v1::Verdict verdict;
  while (stream->Read(&verdict) && !verdict.has_start_grace_expired()) {
  }
  EXPECT_EQ(verdict.start_grace_expired().run(), run.id());
  EXPECT_EQ(verdict.start_grace_expired().reason(), "n1: no heartbeat received");
  context.TryCancel();
  stream->Finish();
}

}  // namespace
}  // namespace muster
