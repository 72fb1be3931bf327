// Pins, the preview of retention and the early end of listeners: the API over mutual TLS.
#include <grpcpp/client_context.h>

#include <string>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "muster/v1/archives.grpc.pb.h"
#include "muster/v1/listeners.grpc.pb.h"
#include "muster/v1/runs.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/identity/signing_request.h"
#include "testing/fixtures/test_call.h"
#include "testing/fixtures/test_fleet.h"

namespace muster {
namespace {

using testing::TestFleet;
using testing::TestIdentity;

class RetentionApiTest : public ::testing::Test {
 protected:
  template <typename Service, typename Request, typename Response>
  absl::StatusOr<Response> Call(const TestIdentity& as,
                                grpc::Status (Service::Stub::*method)(grpc::ClientContext*,
                                                                      const Request&, Response*),
                                const Request& request) {
    return testing::CallUnary<Service>(fleet_.Connect(as), method, request);
  }

  std::string CreateCancelled() {
    const std::string run = fleet_.CreateRun({"hostfacts"}, {"n1"}).id();
    v1::CancelRunRequest request;
    request.set_run(run);
    EXPECT_TRUE(
        Call<v1::RunService>(fleet_.admin(), &v1::RunService::Stub::CancelRun, request).ok());
    return run;
  }

  absl::StatusOr<v1::Run> Pin(const std::string& run, const TestIdentity& as) {
    v1::PinRunRequest request;
    request.set_run(run);
    return Call<v1::RunService>(as, &v1::RunService::Stub::PinRun, request);
  }

  absl::StatusOr<v1::PreviewRetentionResponse> Preview(int64_t runs) {
    v1::PreviewRetentionRequest request;
    request.mutable_rules()->set_runs(runs);
    return Call<v1::RunService>(fleet_.admin(), &v1::RunService::Stub::PreviewRetention, request);
  }

  absl::StatusOr<v1::ReleaseListenerResponse> Release(const std::string& run) {
    v1::ReleaseListenerRequest request;
    request.set_run(run);
    return Call<v1::ListenerService>(gateway_, &v1::ListenerService::Stub::ReleaseListener,
                                     request);
  }

  TestFleet fleet_;
  const TestIdentity gateway_ = fleet_.Issue(ServiceIdentity{ServiceRole::kGateway, "g"});
};

TEST_F(RetentionApiTest, PreviewNamesTheRuleAndDeletesNothing) {
  const std::string first = CreateCancelled();
  const std::string second = CreateCancelled();
  for (int i = 0; i < 2; ++i) {
    const auto preview = Preview(1);
    ASSERT_TRUE(preview.ok()) << preview.status();
    ASSERT_EQ(preview->runs_size(), 1);
    EXPECT_EQ(preview->runs(0).run(), first);
    EXPECT_EQ(preview->runs(0).rule(), "runs=1");
    EXPECT_FALSE(preview->runs(0).in_use());
    EXPECT_EQ(preview->expired_runs(), 1);
    EXPECT_EQ(preview->kept_runs(), 1);
  }
  EXPECT_EQ(ReasonOf(Preview(-1).status()), "INVALID_RETENTION");
  const auto configured = Call<v1::RunService>(
      fleet_.admin(), &v1::RunService::Stub::PreviewRetention, v1::PreviewRetentionRequest());
  ASSERT_TRUE(configured.ok()) << configured.status();
  EXPECT_EQ(configured->expired_runs(), 0);
  EXPECT_EQ(configured->kept_runs(), 2);
}

TEST_F(RetentionApiTest, PinProtectsARunUntilItIsUnpinned) {
  const std::string first = CreateCancelled();
  CreateCancelled();
  const auto pinned = Pin(first, fleet_.admin());
  ASSERT_TRUE(pinned.ok()) << pinned.status();
  EXPECT_TRUE(pinned->pinned());
  EXPECT_EQ(Preview(1)->expired_runs(), 0);
  EXPECT_EQ(Preview(1)->pinned_runs(), 1);
  v1::UnpinRunRequest unpin;
  unpin.set_run(first);
  const auto unpinned =
      Call<v1::RunService>(fleet_.admin(), &v1::RunService::Stub::UnpinRun, unpin);
  ASSERT_TRUE(unpinned.ok()) << unpinned.status();
  EXPECT_FALSE(unpinned->pinned());
  EXPECT_EQ(Preview(1)->expired_runs(), 1);
  EXPECT_EQ(ReasonOf(Pin("ffffffffffffffff", fleet_.admin()).status()), "RUN_NOT_FOUND");
  EXPECT_TRUE(absl::IsPermissionDenied(Pin(first, fleet_.Issue(NodeIdentity{"n1"})).status()));
}

TEST_F(RetentionApiTest, RunIsInUseDuringADownload) {
  const v1::Run run = fleet_.CreateRun({"hostfacts"}, {"n1"});
  uint32_t state = 1;
  std::string noise(16 << 20, '\0');  // more than the buffers of a connection
  for (char& c : noise) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  const auto uploaded =
      testing::UploadAll(fleet_.Connect(fleet_.Credential(run.id(), "hostfacts", "n1")), run.id(),
                         "hostfacts", "n1", noise);
  ASSERT_TRUE(uploaded.ok()) << uploaded.status();
  EXPECT_GT(fleet_.WaitForEnd(run.id()).stored_size(), 2 * (16 << 20));
  CreateCancelled();
  const auto stub = v1::ArchiveService::NewStub(fleet_.Connect(fleet_.admin()));
  grpc::ClientContext context;
  v1::ReadArchiveRequest request;
  request.set_run(run.id());
  const auto stream = stub->ReadArchive(&context, request);
  v1::FileChunk chunk;
  ASSERT_TRUE(stream->Read(&chunk));
  EXPECT_TRUE(Preview(1)->runs(0).in_use());
  while (stream->Read(&chunk)) continue;
  EXPECT_TRUE(stream->Finish().ok());
  const absl::Time limit = absl::Now() + absl::Seconds(30);
  while (Preview(1)->runs(0).in_use() && absl::Now() < limit) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_FALSE(Preview(1)->runs(0).in_use());
}

TEST_F(RetentionApiTest, ReleasedListenerEndsTheCaOfARunThatHasEnded) {
  const std::string live = fleet_.CreateRun({"hostfacts"}, {"n1"}).id();
  EXPECT_EQ(ReasonOf(Release(live).status()), "RUN_NOT_ENDED");
  EXPECT_EQ(ReasonOf(Release("ffffffffffffffff").status()), "RUN_NOT_FOUND");
  const std::string ended = CreateCancelled();
  ASSERT_TRUE(Release(ended).ok());
  EXPECT_TRUE(Release(ended).ok());  // the answer was lost
  v1::SignListenerCertificateRequest sign;
  sign.set_run(ended);
  sign.set_csr_pem(*CreateSigningRequest(*PrivateKey::Generate()));
  const auto refused = Call<v1::ListenerService>(
      gateway_, &v1::ListenerService::Stub::SignListenerCertificate, sign);
  EXPECT_EQ(ReasonOf(refused.status()), "RUN_ENDED");
}

}  // namespace
}  // namespace muster
