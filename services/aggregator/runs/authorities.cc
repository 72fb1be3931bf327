#include "services/aggregator/runs/authorities.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/text_values.h"
#include "services/common/errors/joining.h"
#include "services/common/errors/runs.h"
#include "services/common/identity/signing_request.h"

namespace muster {
namespace {

absl::Time EndOf(const RunName& name, const RunRecord& run) {
  const absl::Time deadline = absl::FromUnixMicros(run.deadline_at);
  return std::holds_alternative<RunViewerIdentity>(name)
             ? RunViewersEnd(deadline)
             : RunCredentialsEnd(deadline, absl::Microseconds(run.seal_grace));
}

std::vector<std::string> HostsOf(const NodeRecord& relay) {
  std::vector<std::string> hosts;
  for (const auto* targets : {&relay.relay_targets, &relay.join_targets}) {
    for (const std::string& target : *targets) {
      const auto address = ParseHostPort(target);
      if (address && std::ranges::find(hosts, address->host) == hosts.end()) {
        hosts.push_back(address->host);
      }
    }
  }
  return hosts;
}

}  // namespace

absl::StatusOr<RunAuthorityRecord> Authorities::NewRunAuthority(const std::string& run,
                                                                absl::Time deadline,
                                                                absl::Duration seal_grace) const {
  ASSIGN_OR_RETURN(
      const auto authority,
      intermediate_.CreateRunAuthority(run, clock_.Now(), RunAuthorityEnd(deadline, seal_grace)));
  ASSIGN_OR_RETURN(auto wrapped, key_wrap_.Wrap(authority.key(), run));
  RunAuthorityRecord record;
  record.fleet_signed_pem = authority.fleet_signed().ToPem();
  record.self_signed_pem = authority.self_signed().ToPem();
  record.wrapped_key = std::move(wrapped);
  record.ends_at = absl::ToUnixMicros(authority.NotAfter());
  return record;
}

absl::StatusOr<RunAuthority> Authorities::LoadRunAuthority(const std::string& run) const {
  ASSIGN_OR_RETURN(const auto record, store_.GetAuthority(run));
  if (!record) {
    ASSIGN_OR_RETURN(const auto view, store_.GetRun(run));
    return view ? errors::RunEnded(run) : errors::RunNotFound(run);
  }
  ASSIGN_OR_RETURN(auto key, key_wrap_.Unwrap(record->wrapped_key, run));
  ASSIGN_OR_RETURN(auto fleet_signed, Certificate::FromPem(record->fleet_signed_pem));
  ASSIGN_OR_RETURN(auto self_signed, Certificate::FromPem(record->self_signed_pem));
  return RunAuthority::Load(fleet(), run, std::move(key), std::move(fleet_signed),
                            std::move(self_signed));
}

absl::StatusOr<SignedCertificate> Authorities::SignForRun(const RunName& name, const RunRecord& run,
                                                          const std::string& csr_pem,
                                                          const std::vector<std::string>& hosts,
                                                          const Actor& asked_by) {
  ASSIGN_OR_RETURN(const auto key, VerifySigningRequest(csr_pem));
  ASSIGN_OR_RETURN(const auto authority, LoadRunAuthority(run.id));
  ASSIGN_OR_RETURN(const auto leaf,
                   authority.Issue(name, key, hosts, clock_.Now(), EndOf(name, run)));
  ASSIGN_OR_RETURN(const auto uri, leaf.Uri());
  RETURN_IF_ERROR(Record(RecordOf(uri, leaf, asked_by.uri), "", asked_by.vouched_by));
  return SignedCertificate{
      uri, leaf.ToPem(),
      absl::StrCat(authority.fleet_signed().ToPem(), intermediate_.certificate().ToPem()),
      leaf.NotAfter()};
}

absl::StatusOr<Authorities::Unrecorded> Authorities::SignUnrecorded(
    const FleetName& name, const std::string& csr_pem, const std::vector<std::string>& hosts,
    absl::Duration validity, const std::string& asked_by) const {
  ASSIGN_OR_RETURN(const auto key, VerifySigningRequest(csr_pem));
  const absl::Time now = clock_.Now();
  ASSIGN_OR_RETURN(const auto leaf, intermediate_.Issue(name, key, hosts, now, now + validity));
  ASSIGN_OR_RETURN(const auto uri, leaf.Uri());
  return Unrecorded{{uri, leaf.ToPem(), intermediate_.certificate().ToPem(), leaf.NotAfter()},
                    RecordOf(uri, leaf, asked_by)};
}

absl::StatusOr<SignedCertificate> Authorities::SignForFleet(
    const FleetName& name, const std::string& csr_pem, const std::vector<std::string>& hosts,
    absl::Duration validity, const std::string& asked_by, const std::string& renewed) {
  ASSIGN_OR_RETURN(auto made, SignUnrecorded(name, csr_pem, hosts, validity, asked_by));
  RETURN_IF_ERROR(Record(std::move(made.record), renewed));
  return std::move(made.certificate);
}

absl::StatusOr<Authorities::Unrecorded> Authorities::SignMemberUnrecorded(
    const NodeRecord& member, const std::string& csr_pem, const std::string& asked_by) const {
  if (member.relay) {
    return SignUnrecorded(ServiceIdentity{ServiceRole::kRelay, member.name}, csr_pem,
                          HostsOf(member), kRelayValidity, asked_by);
  }
  return SignUnrecorded(NodeIdentity{member.name}, csr_pem, {}, kNodeValidity, asked_by);
}

absl::StatusOr<SignedCertificate> Authorities::SignForMember(const NodeRecord& member,
                                                             const std::string& csr_pem,
                                                             const std::string& asked_by,
                                                             const std::string& renewed) {
  ASSIGN_OR_RETURN(auto made, SignMemberUnrecorded(member, csr_pem, asked_by));
  ASSIGN_OR_RETURN(const auto recorded,
                   store_.ApplyAndWait(RecordIssued{std::move(made.record), member.name, renewed}));
  switch (recorded.verdict) {
    case RecordIssued::Verdict::kRecorded:
      return std::move(made.certificate);
    case RecordIssued::Verdict::kNotEnrolled:
      return errors::NodeNotEnrolled(member.name);
    case RecordIssued::Verdict::kRevoked:
      return errors::NodeRevoked(member.name);
    case RecordIssued::Verdict::kTooMany:
      return errors::RenewalLimit(member.uri, kMaxRenewals);
  }
  return absl::InternalError("unknown verdict");
}

absl::Status Authorities::LoadOperators() {
  ASSIGN_OR_RETURN(const auto issued, store_.NewestOfEach(operators_.prefix()));
  RecordedOperators::Expiries expires;
  for (const IssuedRecord& record : issued) {
    expires[record.uri] = absl::FromUnixMicros(record.expires_at);
  }
  operators_.Replace(std::move(expires));
  return absl::OkStatus();
}

absl::Status Authorities::ImportOperator(const std::string& certificate_file) {
  const auto pem = ReadFileBounded(certificate_file, kMaxSecretFile);
  if (absl::IsNotFound(pem.status())) return absl::OkStatus();
  if (!pem.ok()) return pem.status();
  const auto certificate = Certificate::FromPem(*pem);
  if (!certificate.ok()) return Annotate(certificate.status(), certificate_file);
  const auto uri = certificate->Uri();
  if (!uri.ok()) return Annotate(uri.status(), certificate_file);
  ASSIGN_OR_RETURN(const auto known,
                   store_.FindIssued(certificate->IssuerKeyId(), certificate->Serial()));
  if (known) return absl::OkStatus();
  const absl::Status recorded = Record(RecordOf(*uri, *certificate, *uri));
  // The record of a revoked operator is removed long after its expiry, and the file stays.
  return ReasonOf(recorded) == "CERTIFICATE_REVOKED" ? absl::OkStatus() : recorded;
}

IssuedRecord Authorities::RecordOf(const std::string& uri, const Certificate& certificate,
                                   const std::string& asked_by) const {
  IssuedRecord issued;
  issued.uri = uri;
  issued.issuer = certificate.IssuerKeyId();
  issued.serial = certificate.Serial();
  issued.issued_to = asked_by;
  issued.issued_at = absl::ToUnixMicros(clock_.Now());
  issued.expires_at = absl::ToUnixMicros(certificate.NotAfter());
  return issued;
}

// Records a certificate before it is handed out: an unrecorded one could not be revoked.
absl::Status Authorities::Record(IssuedRecord record, std::string renewed, std::string vouched_by) {
  const std::string uri = record.uri;
  const int64_t expires_at = record.expires_at;
  const bool of_operator = uri.starts_with(operators_.prefix());
  ASSIGN_OR_RETURN(const auto recorded,
                   store_.ApplyAndWait(RecordIssued{std::move(record), "", std::move(renewed),
                                                    std::move(vouched_by), of_operator}));
  switch (recorded.verdict) {
    case RecordIssued::Verdict::kRevoked:
      return errors::CertificateRevoked(uri);
    case RecordIssued::Verdict::kTooMany:
      return errors::RenewalLimit(uri, kMaxRenewals);
    case RecordIssued::Verdict::kRecorded:
      operators_.Add(uri, absl::FromUnixMicros(expires_at));
      break;
    case RecordIssued::Verdict::kNotEnrolled:
      break;
  }
  return absl::OkStatus();
}

}  // namespace muster
