// Tests of the aggregator's API over real mutual TLS, on real files.
#include "services/aggregator/aggregator.h"

#include <grpcpp/client_context.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "muster/v1/archives.grpc.pb.h"
#include "muster/v1/listeners.grpc.pb.h"
#include "muster/v1/results.grpc.pb.h"
#include "muster/v1/runs.grpc.pb.h"
#include "services/aggregator/config.h"
#include "services/common/base/config.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/error.h"
#include "services/common/base/sha256.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/signing_request.h"
#include "services/common/rpc/status.h"
#include "testing/fixtures/test_fleet.h"

namespace muster {
namespace {

using testing::SmallResult;
using testing::TestFleet;
using testing::TestIdentity;
using testing::UploadAll;

constexpr char kOnce[] =
    "sonobuoy-config:\n  driver: Job\n  plugin-name: once\n  result-format: raw\n"
    "spec:\n  name: plugin\n  command: [/bin/true]\n";

std::string Noise(size_t size) {
  std::string noise(size, '\0');
  uint32_t state = 12345;
  for (char& c : noise) {
    state = state * 1664525 + 1013904223;
    c = static_cast<char>(state >> 24);
  }
  return noise;
}

class AggregatorTest : public ::testing::Test {
 protected:
  absl::StatusOr<v1::Result> Submit(const TestIdentity& identity,
                                    const v1::SubmitResultRequest& request) {
    v1::Result result;
    grpc::ClientContext context;
    const auto stub = v1::ResultService::NewStub(fleet_.Connect(identity));
    const grpc::Status status = stub->SubmitResult(&context, request, &result);
    if (!status.ok()) return FromGrpc(status);
    return result;
  }

  std::string ReadArchive(const std::string& run, v1::Archive* archive) {
    const auto stub = v1::ArchiveService::NewStub(fleet_.Connect(fleet_.admin()));
    v1::GetArchiveRequest get;
    get.set_run(run);
    grpc::ClientContext get_context;
    EXPECT_TRUE(stub->GetArchive(&get_context, get, archive).ok());
    v1::ReadArchiveRequest read;
    read.set_run(run);
    grpc::ClientContext context;
    const auto stream = stub->ReadArchive(&context, read);
    v1::FileChunk chunk;
    std::string bytes;
    while (stream->Read(&chunk)) bytes += chunk.data();
    EXPECT_TRUE(stream->Finish().ok());
    return bytes;
  }

  TestFleet fleet_;
};

TEST_F(AggregatorTest, SmallResultIsCommittedAndArchived) {
  const v1::Run run = fleet_.CreateRun({"hostfacts"}, {"n1"});
  const TestIdentity node = fleet_.Credential(run.id(), "hostfacts", "n1");
  const auto result = Submit(node, SmallResult(run.id(), "hostfacts", "n1", "{\"a\":1}"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outcome(), v1::OUTCOME_GENUINE);
  EXPECT_EQ(result->generation(), 1);
  const v1::Run ended = fleet_.WaitForEnd(run.id());
  EXPECT_EQ(ended.state(), v1::RUN_STATE_COMPLETE) << ended.state_reason();
  v1::Archive archive;
  const std::string bytes = ReadArchive(run.id(), &archive);
  EXPECT_EQ(static_cast<int64_t>(bytes.size()), archive.size());
  EXPECT_EQ(DigestBytes(Sha256::Of(bytes)), archive.sha256());
  EXPECT_EQ(bytes.substr(0, 2), "\x1f\x8b");
}

TEST_F(AggregatorTest, StoredResultsOfALostDatabaseAreKept) {
  const v1::Run run = fleet_.CreateRun({"hostfacts"}, {"n1"});
  const auto channel = fleet_.Connect(fleet_.Credential(run.id(), "hostfacts", "n1"));
  ASSERT_TRUE(UploadAll(channel, run.id(), "hostfacts", "n1", Noise(100'000)).ok());
  fleet_.Stop();
  const std::string& folder = fleet_.config.state_folder;
  std::filesystem::remove(folder + "/state.db");
  // As a home of an earlier version.
  std::filesystem::remove(folder + "/state.db.created");
  const auto started = Aggregator::Start(fleet_.config, [](const absl::Status&) {});
  EXPECT_EQ(ReasonOf(started.status()), "STORE_MISSING");
  EXPECT_TRUE(std::filesystem::exists(folder + "/blobs/blobs/runs/" + run.id() + "/results"));
}

TEST_F(AggregatorTest, RepeatedContentSucceedsAndOtherContentConflicts) {
  const v1::Run run = fleet_.CreateRun({"hostfacts"}, {"n1", "n2"});
  const TestIdentity node = fleet_.Credential(run.id(), "hostfacts", "n1");
  ASSERT_TRUE(Submit(node, SmallResult(run.id(), "hostfacts", "n1", "one")).ok());
  const auto again = Submit(node, SmallResult(run.id(), "hostfacts", "n1", "one"));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->generation(), 1);
  const auto other = Submit(node, SmallResult(run.id(), "hostfacts", "n1", "two"));
  EXPECT_EQ(ReasonOf(other.status()), "RESULT_CONFLICT");
  EXPECT_FALSE(NextStepOf(other.status()).empty());
}

TEST_F(AggregatorTest, GenuineResultReplacesAnError) {
  const v1::Run run = fleet_.CreateRun({"hostfacts"}, {"n1", "n2"});
  const TestIdentity node = fleet_.Credential(run.id(), "hostfacts", "n1");
  v1::SubmitResultRequest error = SmallResult(run.id(), "hostfacts", "n1", "it broke");
  error.mutable_description()->set_is_error(true);
  const auto first = Submit(node, error);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->outcome(), v1::OUTCOME_ERROR);
  EXPECT_EQ(first->error(), "it broke");
  v1::SubmitResultRequest genuine = SmallResult(run.id(), "hostfacts", "n1", "fine");
  genuine.mutable_description()->set_attempt(2);
  const auto second = Submit(node, genuine);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->outcome(), v1::OUTCOME_GENUINE);
  EXPECT_EQ(second->generation(), 2);
}

TEST_F(AggregatorTest, NodeCannotDeliverForAnother) {
  const v1::Run run = fleet_.CreateRun({"hostfacts"}, {"n1", "n2"});
  const TestIdentity node = fleet_.Credential(run.id(), "hostfacts", "n1");
  const auto result = Submit(node, SmallResult(run.id(), "hostfacts", "n2", "x"));
  EXPECT_EQ(result.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(ReasonOf(result.status()), "NOT_YOURS");
}

TEST_F(AggregatorTest, ResultOfAnAnyNodeCredentialIsMarked) {
  const v1::Run run = fleet_.CreateRun({"hostfacts"}, {"n1", "n2"});
  const TestIdentity any = fleet_.Credential(run.id(), "hostfacts", "");
  const auto result = Submit(any, SmallResult(run.id(), "hostfacts", "n2", "x"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->delivery().node_unproven());
  const auto unplanned = Submit(any, SmallResult(run.id(), "hostfacts", "n3", "x"));
  EXPECT_EQ(ReasonOf(unplanned.status()), "PAIR_NOT_PLANNED");
}

TEST_F(AggregatorTest, CredentialOfAnotherRunIsRefused) {
  const v1::Run one = fleet_.CreateRun({"hostfacts"}, {"n1"});
  const v1::Run two = fleet_.CreateRun({"hostfacts"}, {"n1"});
  const TestIdentity node = fleet_.Credential(one.id(), "hostfacts", "n1");
  const auto result = Submit(node, SmallResult(two.id(), "hostfacts", "n1", "x"));
  EXPECT_EQ(ReasonOf(result.status()), "NOT_YOURS");
}

TEST_F(AggregatorTest, HostPatternGivesEachRunAHostName) {
  const v1::Run before = fleet_.CreateRun({"hostfacts"}, {"n1"});
  fleet_.Stop();
  fleet_.config.legacy_host = "{run}.collect.example.org";
  fleet_.Start();
  const v1::Run after = fleet_.CreateRun({"hostfacts"}, {"n1"});
  const std::string host = after.id() + ".collect.example.org";
  ASSERT_EQ(after.legacy_listener().urls_size(), 1);
  EXPECT_EQ(after.legacy_listener().urls(0), "https://" + host + ":1");

  const auto stub = v1::ListenerService::NewStub(
      fleet_.Connect(fleet_.Issue(ServiceIdentity{ServiceRole::kGateway, "g"})));
  const auto sign = [&](const std::string& run) {
    v1::SignListenerCertificateRequest request;
    request.set_run(run);
    request.set_csr_pem(*CreateSigningRequest(*PrivateKey::Generate()));
    v1::SignListenerCertificateResponse response;
    grpc::ClientContext context;
    EXPECT_TRUE(stub->SignListenerCertificate(&context, request, &response).ok());
    return response;
  };
  const v1::SignListenerCertificateResponse named = sign(after.id());
  EXPECT_EQ(named.server_name(), host);
  EXPECT_EQ(Certificate::FromPem(named.certificate_pem())->Hosts(), std::vector<std::string>{host});
  // An existing run keeps the port that its sidecars know.
  EXPECT_EQ(sign(before.id()).server_name(), "");
  EXPECT_EQ(sign(before.id()).port(), 1);
}

// After a restart a live run may not have opened its port yet when a new run chooses.
TEST_F(AggregatorTest, NewRunLearnsThePortsOfLiveRuns) {
  const v1::Run live = fleet_.CreateRun({"hostfacts"}, {"n1"});  // with port 1
  v1::CreateRunRequest create;
  create.add_plugins("hostfacts");
  create.add_nodes("n1");
  v1::Run created;
  grpc::ClientContext create_context;
  ASSERT_TRUE(v1::RunService::NewStub(fleet_.Connect(fleet_.admin()))
                  ->CreateRun(&create_context, create, &created)
                  .ok());
  const auto stub = v1::ListenerService::NewStub(
      fleet_.Connect(fleet_.Issue(ServiceIdentity{ServiceRole::kGateway, "g"})));
  const auto sign = [&](const std::string& run) {
    v1::SignListenerCertificateRequest request;
    request.set_run(run);
    request.set_csr_pem(*CreateSigningRequest(*PrivateKey::Generate()));
    v1::SignListenerCertificateResponse response;
    grpc::ClientContext context;
    EXPECT_TRUE(stub->SignListenerCertificate(&context, request, &response).ok());
    return response;
  };
  const v1::SignListenerCertificateResponse signed_new = sign(created.id());
  ASSERT_EQ(signed_new.taken_ports_size(), 1);
  EXPECT_EQ(signed_new.taken_ports(0), 1);
  EXPECT_EQ(sign(live.id()).port(), 1);
}

TEST_F(AggregatorTest, InvalidHostPatternFailsTheStart) {
  AggregatorConfig config;
  Config file("muster-aggregator");
  BindAggregatorConfig(&config, &file);
  EXPECT_EQ(file.Parse("listen: a:1\nlegacy_host: collect.example.org\n", "a.yaml").message(),
            "a.yaml:2: legacy_host: \"collect.example.org\" is not valid; allowed: a DNS name in "
            "lower case with {run} in it once, such as {run}.collect.example.org; or nothing");
}

TEST_F(AggregatorTest, LargeUploadIsResumedAfterARestart) {
  const v1::Run run = fleet_.CreateRun({kOnce}, {});
  const TestIdentity node = fleet_.Credential(run.id(), "once", "global");
  const std::string body = Noise(5'000'000);
  v1::OpenUploadResponse opened;
  {
    const auto stub = v1::ResultService::NewStub(fleet_.Connect(node));
    v1::OpenUploadRequest open;
    *open.mutable_description() = SmallResult(run.id(), "once", "global", "").description();
    grpc::ClientContext open_context;
    ASSERT_TRUE(stub->OpenUpload(&open_context, open, &opened).ok());
    grpc::ClientContext context;
    const auto stream = stub->Upload(&context);
    v1::UploadRequest request;
    request.mutable_start()->set_upload_id(opened.upload_id());
    request.mutable_start()->set_epoch(opened.epoch());
    stream->Write(request);
    const std::string piece = body.substr(0, 1'000'000);
    request.mutable_chunk()->set_raw_size(1'000'000);
    request.mutable_chunk()->set_crc32c(Crc32c(piece));
    request.mutable_chunk()->set_data(piece);
    stream->Write(request);
    v1::UploadResponse response;
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_EQ(response.ack().written(), 1'000'000);
    fleet_.Stop();
    stream->Finish();
  }
  fleet_.Start();
  const auto stub = v1::ResultService::NewStub(fleet_.Connect(node));
  v1::OpenUploadRequest open;
  *open.mutable_description() = SmallResult(run.id(), "once", "global", "").description();
  v1::OpenUploadResponse again;
  grpc::ClientContext open_context;
  ASSERT_TRUE(stub->OpenUpload(&open_context, open, &again).ok());
  EXPECT_EQ(again.upload_id(), opened.upload_id());
  EXPECT_GT(again.epoch(), opened.epoch());
  EXPECT_EQ(again.offset(), 1'000'000);
  const auto result = UploadAll(fleet_.Connect(node), run.id(), "once", "global", body);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->sha256(), DigestBytes(Sha256::Of(body)));
  EXPECT_EQ(fleet_.WaitForEnd(run.id()).state(), v1::RUN_STATE_COMPLETE);
}

TEST_F(AggregatorTest, RunIsSealedAfterDeadlineAndGrace) {
  const v1::Run run = fleet_.CreateRun({kOnce}, {}, /*timeout_seconds=*/1);
  const TestIdentity node = fleet_.Credential(run.id(), "once", "global");
  const v1::Run ended = fleet_.WaitForEnd(run.id());
  EXPECT_EQ(ended.state(), v1::RUN_STATE_COMPLETE) << ended.state_reason();
  EXPECT_EQ(ended.counts().timed_out(), 1);
  const auto late = Submit(node, SmallResult(run.id(), "once", "global", "late"));
  EXPECT_EQ(ReasonOf(late.status()), "RUN_SEALED");
}

TEST_F(AggregatorTest, DamagedChunkIsRefusedAndTheUploadContinues) {
  const v1::Run run = fleet_.CreateRun({kOnce}, {});
  const TestIdentity node = fleet_.Credential(run.id(), "once", "global");
  v1::SubmitResultRequest wrong = SmallResult(run.id(), "once", "global", "abc");
  wrong.set_crc32c(wrong.crc32c() + 1);
  EXPECT_EQ(ReasonOf(Submit(node, wrong).status()), "CRC_MISMATCH");
  wrong = SmallResult(run.id(), "once", "global", "abc");
  wrong.set_sha256(std::string(32, 'x'));
  EXPECT_EQ(ReasonOf(Submit(node, wrong).status()), "DIGEST_MISMATCH");
  EXPECT_TRUE(Submit(node, SmallResult(run.id(), "once", "global", "abc")).ok());
}

// It would exclude every later upload of the pair.
TEST_F(AggregatorTest, SmallResultWithAnAttemptOfTheFutureIsRefused) {
  const v1::Run run = fleet_.CreateRun({kOnce}, {});
  const TestIdentity node = fleet_.Credential(run.id(), "once", "global");
  v1::SubmitResultRequest request = SmallResult(run.id(), "once", "global", "it broke");
  request.mutable_description()->set_is_error(true);
  request.mutable_description()->set_attempt(absl::ToUnixNanos(absl::Now() + absl::Hours(48)));
  EXPECT_EQ(ReasonOf(Submit(node, request).status()), "INVALID_ATTEMPT");
  request.mutable_description()->set_attempt(0);
  EXPECT_EQ(ReasonOf(Submit(node, request).status()), "INVALID_ATTEMPT");
  request.mutable_description()->set_attempt(absl::GetCurrentTimeNanos());
  EXPECT_TRUE(Submit(node, request).ok());
}

TEST_F(AggregatorTest, CancelledRunRefusesResults) {
  const v1::Run run = fleet_.CreateRun({kOnce}, {});
  const TestIdentity node = fleet_.Credential(run.id(), "once", "global");
  v1::CancelRunRequest cancel;
  cancel.set_run(run.id());
  cancel.set_reason("not needed");
  v1::Run cancelled;
  grpc::ClientContext context;
  const auto stub = v1::RunService::NewStub(fleet_.Connect(fleet_.admin()));
  ASSERT_TRUE(stub->CancelRun(&context, cancel, &cancelled).ok());
  EXPECT_EQ(cancelled.state(), v1::RUN_STATE_CANCELLED);
  const auto late = Submit(node, SmallResult(run.id(), "once", "global", "late"));
  EXPECT_EQ(ReasonOf(late.status()), "RUN_CANCELLED");
  v1::DeleteRunRequest remove;
  remove.set_run(run.id());
  v1::DeleteRunResponse removed;
  grpc::ClientContext remove_context;
  EXPECT_TRUE(stub->DeleteRun(&remove_context, remove, &removed).ok());
  EXPECT_EQ(ReasonOf(Submit(node, SmallResult(run.id(), "once", "global", "late")).status()),
            "RUN_NOT_FOUND");
}

TEST_F(AggregatorTest, EnrolledNodeReadsAndServesItsRuns) {
  const v1::Run mine = fleet_.CreateRun({"hostfacts"}, {"n1", "n2"});
  const v1::Run other = fleet_.CreateRun({"hostfacts"}, {"n2"});
  const TestIdentity node = fleet_.Issue(NodeIdentity{"n1"});
  const auto stub = v1::RunService::NewStub(fleet_.Connect(node));
  const auto get = [&](const std::string& id) {
    v1::GetRunRequest request;
    request.set_run(id);
    v1::Run run;
    grpc::ClientContext context;
    return FromGrpc(stub->GetRun(&context, request, &run));
  };
  EXPECT_TRUE(get(mine.id()).ok());
  EXPECT_EQ(ReasonOf(get(other.id())), "PAIR_NOT_PLANNED");
  EXPECT_TRUE(Submit(node, SmallResult(mine.id(), "hostfacts", "n1", "x")).ok());
  EXPECT_EQ(ReasonOf(Submit(node, SmallResult(mine.id(), "hostfacts", "n2", "x")).status()),
            "NOT_YOURS");
}

// A chunk that is stored while the next one is received must not be overtaken by a third.
TEST_F(AggregatorTest, ConcurrentChunksStayInOrder) {
  constexpr int kNodes = 4;
  std::vector<std::string> nodes;
  for (int i = 0; i < kNodes; ++i) nodes.push_back(absl::StrCat("n", i));
  const v1::Run run = fleet_.CreateRun({"hostfacts"}, nodes);
  std::vector<std::thread> senders;
  for (const std::string& node : nodes) {
    senders.emplace_back([&, channel = fleet_.Connect(fleet_.Issue(NodeIdentity{node}))] {
      const std::string body(200'000, node.back());
      const auto result = UploadAll(channel, run.id(), "hostfacts", node, body, /*chunk=*/100);
      EXPECT_TRUE(result.ok()) << result.status();
    });
  }
  for (std::thread& sender : senders) sender.join();
}

}  // namespace
}  // namespace muster
