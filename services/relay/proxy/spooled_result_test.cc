// Results that a relay spooled, as their node, the relay and the aggregator see them.
#include <grpcpp/grpcpp.h>

#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/v1/results.grpc.pb.h"
#include "muster/v1/runs.grpc.pb.h"
#include "services/client/client.h"
#include "services/common/base/error.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/status_macros.h"
#include "services/common/blob/blob_test_util.h"
#include "services/common/rpc/status.h"
#include "services/relay/testing/forward_fixture.h"
#include "testing/fixtures/await.h"
#include "testing/fixtures/test_upload.h"

namespace muster {
namespace {

using client::Code;
using testing::Await;
using ::testing::HasSubstr;
using testing::OpenTestUpload;
using testing::SignTestResult;
using testing::SmallResult;
using testing::TestUploadStream;

class SpooledResultTest : public testing::ForwardTestBase {
 protected:
  // Delivers `body` as attempt 1, as one try of an agent does.
  absl::StatusOr<v1::UploadResponse> Try(const std::string& body) {
    const auto channel = relay_.Connect(node_);
    ASSIGN_OR_RETURN(const auto opened, OpenTestUpload(channel, run_, "hostfacts", "n1"));
    TestUploadStream stream(channel, opened);
    const auto offset = static_cast<size_t>(opened.offset());
    if (offset < body.size()) stream.SendChunk(opened.offset(), body.substr(offset));
    stream.SendFinish(body, SignTestResult(node_, run_, "hostfacts", "n1", body));
    return stream.End();
  }

  // The relay spools `body`, and is restarted and connected after `damage` of its spool.
  void SpoolAndDamage(const std::string& body, const std::function<void()>& damage) {
    run_ = fleet_.CreateRun({"hostfacts"}, {"n1"}).id();
    CutOff();
    const auto spooled = Try(body);
    ASSERT_TRUE(spooled.ok()) << spooled.status();
    ASSERT_TRUE(spooled->has_spooled());
    relay_.Stop();
    damage();
    relay_.Start();
    Reconnect();
  }
};

TEST_F(SpooledResultTest, SpooledResultIsCommittedAfterReconnectAndRestart) {
  CutOff();
  const client::Delivery small = MakeClient("hostfacts", true)->SubmitFile(File("{\"a\":1}"), {});
  EXPECT_EQ(small.status.code, Code::kSpooled) << small.status.message;
  EXPECT_THAT(small.status.message, HasSubstr("relay r1 cannot reach its parent"));
  const std::string large = Pattern(3'000'000);
  EXPECT_EQ(MakeClient("systemd-logs", true)->SubmitFile(File(large), {}).status.code,
            Code::kSpooled);
  relay_.Stop();
  // The node has gone meanwhile: its signature is what counts.
  relay_.upstream().Detach("n1");
  relay_.Start();
  Reconnect();
  ASSERT_TRUE(Await([&] { return Committed("systemd-logs").outcome() == v1::OUTCOME_GENUINE; }));
  ASSERT_TRUE(Await([&] { return Committed("hostfacts").outcome() == v1::OUTCOME_GENUINE; }));
  EXPECT_EQ(Committed("systemd-logs").size(), 3'000'000);
  EXPECT_EQ(Committed("systemd-logs").generation(), 1);
  EXPECT_THAT(Committed("systemd-logs").delivery().uri(), HasSubstr("/node/n1"));
  EXPECT_THAT(Committed("systemd-logs").delivery().vouched_by(), HasSubstr("/service/relay/r1"));
  ASSERT_TRUE(Await([&] { return Outcomes("committed") == 2; }));
}

// The aggregator would refuse it finally after the relay has promised to deliver it.
TEST_F(SpooledResultTest, DescriptionThatTheAggregatorRefusesIsNotSpooled) {
  CutOff();
  const auto stub = v1::ResultService::NewStub(relay_.Connect(node_));
  const auto open = [&](const std::string& media_type, const std::string& file_name) {
    v1::OpenUploadRequest request;
    *request.mutable_description() = SmallResult(run_, "hostfacts", "n1", "{}").description();
    request.mutable_description()->set_media_type(media_type);
    request.mutable_description()->set_file_name(file_name);
    grpc::ClientContext context;
    v1::OpenUploadResponse opened;
    return ReasonOf(FromGrpc(stub->OpenUpload(&context, request, &opened)));
  };
  EXPECT_EQ(open("text/plain", std::string(1025, 'f')), "TEXT_TOO_LONG");
  EXPECT_EQ(open(std::string(256, 'm'), "f"), "TEXT_TOO_LONG");
  EXPECT_EQ(open(std::string(255, 'm'), std::string(1024, 'f')), "");
}

TEST_F(SpooledResultTest, ClientWaitsUntilSpooledResultIsCommitted) {
  CutOff();
  std::jthread back([this] {
    ASSERT_TRUE(Await([&] {
      return relay_.metrics().Text().find("muster_relay_spool_taken_total 1") != std::string::npos;
    }));
    Reconnect();
  });
  const client::Delivery delivery =
      MakeClient("systemd-logs")->SubmitFile(File(Pattern(300'000)), {});
  EXPECT_EQ(delivery.status.code, Code::kOk) << delivery.status.message;
  EXPECT_EQ(delivery.receipt.size, 300'000);
  back.join();
  EXPECT_EQ(Committed("systemd-logs").generation(), 1);
}

TEST_F(SpooledResultTest, NodeDeliversAgainAfterTheRelayLostTheBytes) {
  const std::string body = Pattern(100'000);
  SpoolAndDamage(body, [this] {
    ASSERT_TRUE(RemoveTree(PosixFileOps(), relay_.spool_folder() + "/blobs").ok());
  });
  ASSERT_TRUE(Await([&] { return Outcomes("lost") == 1; }));
  EXPECT_EQ(Committed("hostfacts").outcome(), v1::OUTCOME_PENDING);
  const auto again = Try(body);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->committed().size(), 100'000);
  EXPECT_EQ(again->committed().generation(), 1);
  ExpectReport("lost the bytes of this result");
}

TEST_F(SpooledResultTest, NodeDeliversAgainAfterTheRelayLostItsDatabase) {
  const std::string body = Pattern(100'000);
  SpoolAndDamage(body, [this] {
    for (const char* file : {"/spool.db", "/spool.db-wal", "/spool.db-shm"}) {
      std::filesystem::remove(relay_.spool_folder() + file);
    }
  });
  const auto again = Try(body);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->committed().size(), 100'000);
}

TEST_F(SpooledResultTest, ExpiredSpooledResultIsReportedAndCanStillBeDelivered) {
  run_ = fleet_.CreateRun({"hostfacts"}, {"n1"}).id();
  relay_.Stop();
  relay_.config.spool_ttl = absl::ZeroDuration();
  relay_.Start();
  CutOff();
  ASSERT_EQ(MakeClient("hostfacts", true)->SubmitFile(File("{}"), {}).status.code, Code::kSpooled);
  Reconnect();
  ASSERT_TRUE(Await([&] { return Outcomes("expired") == 1; }));
  EXPECT_EQ(Outcomes("committed"), 0);
  EXPECT_EQ(Committed("hostfacts").outcome(), v1::OUTCOME_PENDING);
  // The node still has it.
  EXPECT_EQ(MakeClient("hostfacts")->SubmitFile(File("{}"), {}).status.code, Code::kOk);
  EXPECT_EQ(Committed("hostfacts").outcome(), v1::OUTCOME_GENUINE);
  relay_.upstream().Cut();
  ExpectReport("could not deliver it until");
}

// Its proof is genuine: the node signed the result, and the relay spooled it.
TEST_F(SpooledResultTest, RelayThatReportsAnErrorForASpooledResultDoesNotEndItsPair) {
  run_ = fleet_.CreateRun({"hostfacts"}, {"n1"}).id();
  const v1::SubmitResultRequest result = SmallResult(run_, "hostfacts", "n1", "{}");
  v1::SubmitResultRequest report = SmallResult(run_, "hostfacts", "n1", "it was lost");
  report.mutable_description()->set_is_error(true);
  v1::SpooledProof& proof = *report.mutable_spooled();
  *proof.mutable_signature() = SignTestResult(node_, run_, "hostfacts", "n1", "{}");
  proof.set_size(2);
  proof.set_sha256(result.sha256());
  proof.mutable_accept_time()->set_seconds(absl::ToUnixSeconds(absl::Now()));
  const auto stub = v1::ResultService::NewStub(fleet_.Connect(relay_.identity()));
  grpc::ClientContext context;
  v1::Result current;
  const absl::Status reported = FromGrpc(stub->SubmitResult(&context, report, &current));
  EXPECT_TRUE(reported.ok()) << reported;
  EXPECT_EQ(current.outcome(), v1::OUTCOME_PENDING);
  const client::Delivery delivery = MakeClient("hostfacts")->SubmitFile(File("{}"), {});
  EXPECT_EQ(delivery.status.code, Code::kOk) << delivery.status.message;
  EXPECT_EQ(Committed("hostfacts").outcome(), v1::OUTCOME_GENUINE);
  EXPECT_EQ(Committed("hostfacts").generation(), 1);
  ExpectReport("it was lost");
}

TEST_F(SpooledResultTest, ExpiredSpooledResultOfSealedRunIsRemoved) {
  relay_.Stop();
  relay_.config.spool_ttl = absl::ZeroDuration();
  relay_.Start();
  relay_.upstream().Cut();
  ASSERT_EQ(MakeClient("hostfacts", true)->SubmitFile(File("{}"), {}).status.code, Code::kSpooled);
  v1::CancelRunRequest cancel;
  cancel.set_run(run_);
  v1::Run run;
  grpc::ClientContext context;
  ASSERT_TRUE(v1::RunService::NewStub(fleet_.Connect(fleet_.admin()))
                  ->CancelRun(&context, cancel, &run)
                  .ok());
  relay_.ConnectUp();
  ASSERT_TRUE(Await([&] { return Outcomes("expired") == 1; }));
  EXPECT_THAT(relay_.metrics().Text(), HasSubstr("muster_relay_spool_entries 0\n"));
}

TEST_F(SpooledResultTest, UnsignedSpooledResultIsRejected) {
  const auto stub = v1::ResultService::NewStub(fleet_.Connect(relay_.identity()));
  v1::OpenUploadRequest open;
  *open.mutable_description() = SmallResult(run_, "hostfacts", "n1", "{}").description();
  v1::OpenUploadResponse opened;
  const auto try_open = [&] {
    grpc::ClientContext context;
    return ReasonOf(FromGrpc(stub->OpenUpload(&context, open, &opened)));
  };
  EXPECT_EQ(try_open(), "SIGNATURE_REQUIRED");
  open.mutable_spooled()->mutable_signature()->set_value("x");
  open.mutable_spooled()->mutable_signature()->set_certificate_chain_pem(node_.chain_pem);
  EXPECT_EQ(try_open(), "PROOF_TOO_OLD");
  open.mutable_spooled()->mutable_accept_time()->set_seconds(absl::ToUnixSeconds(absl::Now()));
  EXPECT_EQ(try_open(), "INVALID_SIGNATURE");
  // Another identity may not use the upstream either.
  grpc::ClientContext context;
  EXPECT_EQ(
      ReasonOf(FromGrpc(
          v1::ResultService::NewStub(fleet_.Connect(node_))->OpenUpload(&context, open, &opened))),
      "INVALID_SIGNATURE");
}

}  // namespace
}  // namespace muster
