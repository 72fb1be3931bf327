#include "services/common/jobs/workspace_report.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "services/common/base/names.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/workspaces.h"
#include "services/common/identity/identity.h"
#include "services/common/templates/workspaces.h"

namespace muster {
namespace {

constexpr size_t kMaxChain = size_t{16} << 10;

std::string ReportText(std::string_view fleet, const v1::WorkspaceReport& report) {
  return absl::StrCat("muster-workspace-v1\n", ToAbsl(fleet), "\n", report.job(), "\n",
                      report.node(), "\n", WorkspaceText(report.workspace()), "\n");
}

std::string AnswerText(std::string_view fleet, const v1::WorkspaceReport& report,
                       const v1::SaveWorkspaceResponse& response) {
  return absl::StrCat("muster-workspace-answer-v1\n", ToAbsl(fleet), "\n", report.job(), "\n",
                      report.node(), "\n", WorkspaceText(report.workspace()), "\n",
                      response.saved() ? "saved" : "lost", "\n");
}

absl::Status AnswerRefused(std::string_view why) {
  return errors::WorkspaceRefused(absl::StrCat("the answer to it is not genuine: ", ToAbsl(why)));
}

}  // namespace

absl::Status SignWorkspaceReport(const SigningFiles& node_files, std::string_view fleet,
                                 v1::WorkspaceReport* report) {
  ASSIGN_OR_RETURN(*report->mutable_signature(), node_files.key.Sign(ReportText(fleet, *report)));
  report->set_certificate_chain_pem(node_files.chain_pem);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const VerifiedChain>> VerifyWorkspaceReport(
    const v1::WorkspaceReport& report, std::string_view fleet, VerifiedChains& chains) {
  // A line break in a name would make the signed text ambiguous.
  if (!ValidateName("job", report.job()).ok() || !ValidateName("node", report.node()).ok()) {
    return errors::InvalidWorkspace("the report names no job and node");
  }
  RETURN_IF_ERROR(CheckSavedWorkspace(report.workspace()));
  if (report.certificate_chain_pem().size() > kMaxChain) {
    return errors::WorkspaceRefused("its certificates exceed 16 KiB");
  }
  auto signer = chains.Verify(report.certificate_chain_pem());
  if (!signer.ok()) return errors::WorkspaceRefused(ToStd(signer.status().message()));
  if ((*signer)->uri != ToUri({std::string(fleet), NodeIdentity{report.node()}}).value_or("")) {
    return errors::WorkspaceRefused(absl::StrCat("its certificate is that of ", (*signer)->uri));
  }
  if (!(*signer)->key.Verify(ReportText(fleet, report), report.signature())) {
    return errors::WorkspaceRefused("the signature does not match");
  }
  return *std::move(signer);
}

absl::Status SignWorkspaceAnswer(const SigningFiles& service_files, std::string_view fleet,
                                 const v1::WorkspaceReport& report,
                                 v1::SaveWorkspaceResponse* response) {
  if (!response->saved() && response->lost().empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(*response->mutable_signature(),
                   service_files.key.Sign(AnswerText(fleet, report, *response)));
  response->set_certificate_chain_pem(service_files.chain_pem);
  return absl::OkStatus();
}

absl::Status VerifyWorkspaceAnswer(const v1::WorkspaceReport& report, std::string_view fleet,
                                   std::span<const Certificate> roots, absl::Time now,
                                   const v1::SaveWorkspaceResponse& response) {
  if (response.saved() == !response.lost().empty()) return AnswerRefused("it decides nothing");
  if (response.certificate_chain_pem().size() > kMaxChain) {
    return AnswerRefused("its certificates exceed 16 KiB");
  }
  const auto signer = VerifyClientChain(response.certificate_chain_pem(), roots, now);
  if (!signer.ok()) return AnswerRefused(ToStd(signer.status().message()));
  const auto identity = ParseIdentity(signer->uri, fleet);
  if (!identity.ok() || RoleOf(*identity) != Role::kJobs) {
    return AnswerRefused(absl::StrCat("its signer is no jobs service: ", signer->uri));
  }
  if (signer->key.Verify(AnswerText(fleet, report, response), response.signature())) {
    return absl::OkStatus();
  }
  return AnswerRefused("the signature does not match");
}

}  // namespace muster
