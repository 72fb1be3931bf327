#include "services/common/jobs/workspace_report.h"

#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "services/common/base/clock.h"
#include "services/common/base/error.h"
#include "services/common/identity/authority.h"

namespace muster {
namespace {

constexpr char kFleet[] = "fleet-00112233.muster";

class WorkspaceReportTest : public ::testing::Test {
 protected:
  WorkspaceReportTest() {
    report_.set_job("0123456789abcdef0123456789abcdef");
    report_.set_node("n1");
    report_.mutable_workspace()->set_workspace("w");
    report_.mutable_workspace()->set_version(1);
    report_.mutable_workspace()->set_sha256(std::string(32, 'd'));
    report_.mutable_workspace()->set_size(100);
    EXPECT_TRUE(SignWorkspaceReport(FilesOf(NodeIdentity{"n1"}), kFleet, &report_).ok());
  }

  SigningFiles FilesOf(const FleetName& name) const {
    const PrivateKey key = *PrivateKey::Generate();
    const Certificate leaf =
        *intermediate_.Issue(name, key.public_key(), {}, now_, now_ + absl::Hours(1));
    return {key, ChainToPem(std::vector<Certificate>{leaf, intermediate_.certificate()})};
  }
  std::string Refusal(const v1::WorkspaceReport& report) {
    return ReasonOf(VerifyWorkspaceReport(report, kFleet, chains_).status());
  }

  const absl::Time now_ = absl::Now();
  const FleetRoot root_ = *FleetRoot::Create(kFleet, *PrivateKey::Generate(), now_);
  const PrivateKey intermediate_key_ = *PrivateKey::Generate();
  const Intermediate intermediate_ = *Intermediate::Load(
      kFleet, intermediate_key_, *root_.SignIntermediate(intermediate_key_.public_key(), now_),
      root_.certificate());
  VerifiedChains chains_{[this] { return std::vector<Certificate>{root_.certificate()}; },
                         SystemClock()};
  v1::WorkspaceReport report_;
};

TEST_F(WorkspaceReportTest, ReportOfTheNodeIsVerified) { EXPECT_EQ(Refusal(report_), ""); }

TEST_F(WorkspaceReportTest, ChangeOfAnyFieldIsRefused) {
  const auto changed = [&](auto change) {
    v1::WorkspaceReport report = report_;
    change(report);
    return Refusal(report);
  };
  EXPECT_EQ(changed([](auto& r) { r.set_job("f" + r.job().substr(1)); }), "WORKSPACE_REFUSED");
  EXPECT_EQ(changed([](auto& r) { r.set_node("n2"); }), "WORKSPACE_REFUSED");
  EXPECT_EQ(changed([](auto& r) { r.mutable_workspace()->set_workspace("v"); }),
            "WORKSPACE_REFUSED");
  EXPECT_EQ(changed([](auto& r) { r.mutable_workspace()->set_version(2); }), "WORKSPACE_REFUSED");
  EXPECT_EQ(changed([](auto& r) { r.mutable_workspace()->set_sha256(std::string(32, 'e')); }),
            "WORKSPACE_REFUSED");
  EXPECT_EQ(changed([](auto& r) { r.mutable_workspace()->set_size(99); }), "WORKSPACE_REFUSED");
  EXPECT_EQ(changed([](auto& r) { r.mutable_workspace()->set_omitted(1); }), "WORKSPACE_REFUSED");
  EXPECT_EQ(changed([](auto& r) { r.mutable_workspace()->clear_sha256(); }), "INVALID_WORKSPACE");
  EXPECT_EQ(changed([](auto& r) { r.set_job("a\nb"); }), "INVALID_WORKSPACE");
  EXPECT_EQ(changed([](auto& r) { r.set_certificate_chain_pem(std::string(20'000, ' ')); }),
            "WORKSPACE_REFUSED");
}

TEST_F(WorkspaceReportTest, AnotherNodeCannotSignIt) {
  ASSERT_TRUE(SignWorkspaceReport(FilesOf(NodeIdentity{"n2"}), kFleet, &report_).ok());
  EXPECT_EQ(Refusal(report_), "WORKSPACE_REFUSED");
}

TEST_F(WorkspaceReportTest, OnlyTheJobsServiceSignsTheLastAnswer) {
  const std::vector<Certificate> roots = {root_.certificate()};
  const auto verify = [&](const v1::SaveWorkspaceResponse& response) {
    return ReasonOf(VerifyWorkspaceAnswer(report_, kFleet, roots, now_, response));
  };
  const SigningFiles service = FilesOf(ServiceIdentity{ServiceRole::kJobs, "main"});
  v1::SaveWorkspaceResponse response;
  ASSERT_TRUE(SignWorkspaceAnswer(service, kFleet, report_, &response).ok());
  EXPECT_EQ(verify(response), "WORKSPACE_REFUSED");  // it decides nothing
  response.set_saved(true);
  EXPECT_EQ(verify(response), "WORKSPACE_REFUSED");  // it is not signed
  ASSERT_TRUE(SignWorkspaceAnswer(service, kFleet, report_, &response).ok());
  EXPECT_EQ(verify(response), "");
  v1::SaveWorkspaceResponse other = response;
  other.set_saved(false);
  other.set_lost("x");
  EXPECT_EQ(verify(other), "WORKSPACE_REFUSED");
  const SigningFiles relay = FilesOf(ServiceIdentity{ServiceRole::kRelay, "r1"});
  ASSERT_TRUE(SignWorkspaceAnswer(relay, kFleet, report_, &response).ok());
  EXPECT_EQ(verify(response), "WORKSPACE_REFUSED");
  report_.mutable_workspace()->set_size(99);
  ASSERT_TRUE(SignWorkspaceAnswer(service, kFleet, report_, &response).ok());
  report_.mutable_workspace()->set_size(100);
  EXPECT_EQ(verify(response), "WORKSPACE_REFUSED");  // of another report
}

}  // namespace
}  // namespace muster
