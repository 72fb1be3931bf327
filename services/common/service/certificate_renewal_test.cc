#include "services/common/service/certificate_renewal.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/server_builder.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/v1/identities.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/secret_file.h"
#include "services/common/identity/authority.h"
#include "services/common/identity/signing_request.h"

namespace muster {
namespace {

TEST(CertificateRenewalTest, RenewsAfterTheDelayAndThenEvery30Seconds) {
  FakeClock clock;
  Executor executor({.name = "test", .threads = 1});
  int renewals = 0;
  CertificateRenewal renewal([&] { return ++renewals, absl::OkStatus(); }, clock, executor);
  const auto advance = [&](absl::Duration by) {
    clock.Advance(by);
    executor.AwaitIdle();
  };
  advance(absl::Minutes(1));
  EXPECT_EQ(renewals, 0) << "before Start";
  renewal.Start(absl::Seconds(5));
  advance(absl::Seconds(4));
  EXPECT_EQ(renewals, 0);
  advance(absl::Seconds(1));
  EXPECT_EQ(renewals, 1);
  advance(absl::Seconds(29));
  EXPECT_EQ(renewals, 1);
  advance(absl::Seconds(1));
  EXPECT_EQ(renewals, 2);
}

TEST(CertificateRenewalTest, FailureIsRetried) {
  FakeClock clock;
  Executor executor({.name = "test", .threads = 1});
  int renewals = 0;
  CertificateRenewal renewal([&] { return ++renewals, absl::UnavailableError("away"); }, clock,
                             executor);
  renewal.Start(absl::ZeroDuration());
  for (int i = 0; i < 3; ++i) {
    clock.Advance(absl::Seconds(30));
    executor.AwaitIdle();
  }
  EXPECT_GE(renewals, 3);
}

TEST(CertificateRenewalTest, NothingIsRenewedAfterStop) {
  FakeClock clock;
  Executor executor({.name = "test", .threads = 1});
  int renewals = 0;
  CertificateRenewal renewal([&] { return ++renewals, absl::OkStatus(); }, clock, executor);
  renewal.Start(absl::Seconds(5));
  renewal.Stop();
  renewal.Stop();
  renewal.Start(absl::ZeroDuration());
  clock.Advance(absl::Hours(1));
  executor.AwaitIdle();
  EXPECT_EQ(renewals, 0);
  EXPECT_EQ(clock.waiting_timers(), 0u);
}

constexpr char kFleet[] = "fleet-01.muster";
const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
// Half of the validity has passed.
const absl::Time kDue = kNow + kServiceValidity / 2 + absl::Hours(1);

// Signs the requests of the status service "main" at kDue.
class FakeIdentityService final : public v1::IdentityService::Service {
 public:
  explicit FakeIdentityService(const Intermediate& intermediate) : intermediate_(intermediate) {}

  grpc::Status RenewCertificate(grpc::ServerContext*, const v1::RenewCertificateRequest* request,
                                v1::IssuedCertificate* response) override {
    ++requests;
    if (!refusal.ok()) return refusal;
    const auto key = VerifySigningRequest(request->csr_pem());
    if (!key.ok()) return {grpc::StatusCode::INVALID_ARGUMENT, "not a request"};
    response->set_certificate_chain_pem(ChainFor(*key, kDue));
    return grpc::Status::OK;
  }

  std::string ChainFor(const PublicKey& key, absl::Time now) const {
    const Certificate leaf = *intermediate_.Issue(ServiceIdentity{ServiceRole::kStatus, name}, key,
                                                  {}, now, now + kServiceValidity);
    return ChainToPem(std::vector{leaf, intermediate_.certificate()});
  }

  int requests = 0;  // read between calls
  grpc::Status refusal;
  std::string name = "main";

 private:
  const Intermediate& intermediate_;
};

// The files of a service and the aggregator that renews its certificate.
class RenewIfDueTest : public ::testing::Test {
 protected:
  RenewIfDueTest() {
    std::filesystem::create_directories(tls_);
    const PrivateKey key = *PrivateKey::Generate();
    Write("key.pem", key.ToPkcs8Pem()->view());
    Write("cert.pem", service_.ChainFor(key.public_key(), kNow));
    Write("ca.pem", root_.certificate().ToPem());
    files_ = *CertificateFiles::Open(tls_, base_ / "run", ServiceRole::kStatus, kNow);
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    channel_ =
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials());
  }
  ~RenewIfDueTest() override {
    server_->Shutdown();
    std::filesystem::remove_all(base_);
  }

  void Write(const std::string& name, std::string_view content) const {
    ASSERT_TRUE(WriteFileAtomically(absl::StrCat(tls_, "/", name), content).ok());
  }
  static Intermediate MakeIntermediate(const FleetRoot& root) {
    const PrivateKey key = *PrivateKey::Generate();
    return *Intermediate::Load(kFleet, key, *root.SignIntermediate(key.public_key(), kNow),
                               root.certificate());
  }

  const std::filesystem::path base_ =
      std::filesystem::path(::testing::TempDir()) /
      ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string tls_ = base_ / "tls";
  const FleetRoot root_ = *FleetRoot::Create(kFleet, *PrivateKey::Generate(), kNow);
  const Intermediate intermediate_ = MakeIntermediate(root_);
  FakeIdentityService service_{intermediate_};
  std::unique_ptr<CertificateFiles> files_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(RenewIfDueTest, NothingIsRequestedBeforeHalfOfTheValidity) {
  EXPECT_EQ(RenewIfDue(*files_, channel_, kNow + absl::Hours(1)), absl::OkStatus());
  EXPECT_EQ(service_.requests, 0);
}

TEST_F(RenewIfDueTest, CertificateIsReplacedAtHalfOfItsValidity) {
  const std::string before = files_->certificate().Serial();
  EXPECT_EQ(RenewIfDue(*files_, channel_, kDue), absl::OkStatus());
  EXPECT_EQ(service_.requests, 1);
  EXPECT_NE(files_->certificate().Serial(), before);
  EXPECT_EQ(files_->certificate().NotAfter(), kDue + kServiceValidity);
  EXPECT_EQ(RenewIfDue(*files_, channel_, kDue), absl::OkStatus());
  EXPECT_EQ(service_.requests, 1) << "the new certificate is not due";
}

TEST_F(RenewIfDueTest, RefusalLeavesTheCertificateInUse) {
  const std::string before = files_->certificate().Serial();
  service_.refusal = {grpc::StatusCode::UNAVAILABLE, "away"};
  EXPECT_TRUE(absl::IsUnavailable(RenewIfDue(*files_, channel_, kDue)));
  EXPECT_EQ(files_->certificate().Serial(), before);
  service_.refusal = grpc::Status::OK;
  EXPECT_EQ(RenewIfDue(*files_, channel_, kDue), absl::OkStatus());
  EXPECT_NE(files_->certificate().Serial(), before);
}

TEST_F(RenewIfDueTest, CertificateOfAnotherNameIsRefused) {
  const std::string before = files_->certificate().Serial();
  service_.name = "other";
  EXPECT_EQ(ReasonOf(RenewIfDue(*files_, channel_, kDue)), "CERTIFICATE_FILES_UNUSABLE");
  EXPECT_EQ(files_->certificate().Serial(), before);
}

TEST_F(RenewIfDueTest, FilesThatWereReplacedOnTheDiskArePublished) {
  const PrivateKey key = *PrivateKey::Generate();
  Write("key.pem", key.ToPkcs8Pem()->view());
  Write("cert.pem", service_.ChainFor(key.public_key(), kDue));
  EXPECT_EQ(RenewIfDue(*files_, channel_, kDue), absl::OkStatus());
  EXPECT_EQ(service_.requests, 0);
  EXPECT_TRUE(files_->certificate().Matches(key));
}

}  // namespace
}  // namespace muster
