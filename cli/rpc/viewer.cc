#include "cli/rpc/viewer.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/exit_code.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/identity/custom_certificate.h"
#include "services/common/identity/key.h"
#include "services/common/identity/signing_request.h"

namespace muster::cli {
namespace {

constexpr size_t kMaxPem = size_t{64} << 10;

absl::Status ReadInto(const std::string& file, std::string* text) {
  if (file.empty()) return absl::OkStatus();
  auto content = ReadFileBounded(file, kMaxPem);
  if (!content.ok()) return WithSubject(content.status(), absl::StrCat("file ", file));
  *text = *std::move(content);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::SetStatusListenerRequest> ReadStatusListener(const StatusListenerFiles& files) {
  if (files.certificate.empty() != files.key.empty()) {
    return UsageError(
        "a certificate was given without its key, or a key without its certificate",
        "Give both --status-cert and --status-key, or neither to use the fleet's certificate.");
  }
  if (files.client_ca.empty()) {
    return UsageError(
        "--status-client-ca is missing",
        "Name the CA of the clients that may see the status: --status-client-ca FILE.");
  }
  v1::SetStatusListenerRequest request;
  for (const auto& [file, text] :
       {std::pair{&files.client_ca, request.mutable_client_ca_pem()},
        std::pair{&files.certificate, request.mutable_certificate_pem()}}) {
    RETURN_IF_ERROR(ReadInto(*file, text));
  }
  // Checked here too, so that the error names the option.
  RETURN_IF_ERROR(AsUsageError(ReadCustomClientCas(request.client_ca_pem(), absl::Now()).status(),
                               "--status-client-ca"));
  if (files.key.empty()) return request;
  auto key = ReadSecretFile(files.key, [](std::string_view text) {
    return absl::StrContains(ToAbsl(text), "PRIVATE KEY-----") ? absl::OkStatus()
                                                               : PrivateKey::FromPem(text).status();
  });
  if (absl::IsInvalidArgument(key.status())) return AsUsageError(key.status(), "--status-key");
  if (!key.ok()) return WithSubject(key.status(), absl::StrCat("file ", files.key));
  RETURN_IF_ERROR(AsUsageError(
      ReadCustomServerCertificate(request.certificate_pem(), *key, absl::Now()).status(),
      "--status-cert and --status-key"));
  request.set_key_pem(*std::move(key));
  return request;
}

absl::StatusOr<StatusCredentials> IssueViewer(Client& client, const std::string& run) {
  ASSIGN_OR_RETURN(const auto key, PrivateKey::Generate());
  ASSIGN_OR_RETURN(auto csr, CreateSigningRequest(key));
  v1::IssueViewerCredentialRequest request;
  request.set_run(run);
  request.set_csr_pem(std::move(csr));
  ASSIGN_OR_RETURN(const auto viewer, client.IssueViewerCredential(request));
  StatusCredentials credentials;
  credentials.host_address = viewer.host_address();
  credentials.created_at = absl::Now();
  credentials.ca_cert = viewer.server_ca_pem();
  credentials.client_cert = absl::StrCat(viewer.certificate_pem(), viewer.chain_pem());
  ASSIGN_OR_RETURN(credentials.client_key, key.ToSec1Pem());
  return credentials;
}

}  // namespace muster::cli
