#include "services/aggregator/identity_service.h"

#include <set>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "services/aggregator/convert.h"
#include "services/common/base/new_name.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/joining.h"
#include "services/common/errors/runs.h"
#include "services/common/identity/caller_uri.h"
#include "services/common/identity/revocation.h"

namespace muster {
namespace {

constexpr size_t kMaxReason = 1024;

// Returns the name in the register of nodes, if the identity joined.
std::string MemberName(const Identity& identity) {
  if (const auto* node = std::get_if<NodeIdentity>(&identity.name)) return node->name;
  const auto* service = std::get_if<ServiceIdentity>(&identity.name);
  const bool relay = service != nullptr && service->role == ServiceRole::kRelay;
  return relay && service->name != kRootRelay ? service->name : "";
}

absl::StatusOr<std::set<std::string>> RevokedSubjects(StateStore& store) {
  ASSIGN_OR_RETURN(const auto revocations, store.Revocations());
  std::set<std::string> subjects;
  for (const RevocationRecord& revocation : revocations) subjects.insert(revocation.subject);
  return subjects;
}

v1::Operator ToProto(const IssuedRecord& newest, const std::string& name, bool revoked) {
  v1::Operator proto;
  proto.set_name(name);
  proto.set_uri(newest.uri);
  proto.set_revoked(revoked);
  *proto.mutable_issue_time() = ToTimestamp(newest.issued_at);
  *proto.mutable_expire_time() = ToTimestamp(newest.expires_at);
  return proto;
}

}  // namespace

std::string IdentityService::OperatorUri(const std::string& name) const {
  return absl::StrCat(authorities_.operators().prefix(), name);
}

void IdentityService::Describe(const SignedCertificate& certificate,
                               v1::IssuedCertificate* response) const {
  response->set_uri(certificate.uri);
  response->set_certificate_chain_pem(absl::StrCat(certificate.leaf_pem, certificate.chain_pem));
  response->set_fleet_ca_pem(authorities_.FleetCaPem());
  *response->mutable_expire_time() = ToTimestamp(absl::ToUnixMicros(certificate.expires));
  for (const std::string& target : addresses_.aggregator_targets) {
    response->add_aggregator_targets(target);
  }
  for (const std::string& target : addresses_.status_targets) response->add_status_targets(target);
  for (const std::string& url : addresses_.gateway_urls) response->add_gateway_urls(url);
  for (const std::string& target : addresses_.relay_targets) response->add_relay_targets(target);
  for (const std::string& target : addresses_.jobs_targets) response->add_jobs_targets(target);
}

absl::Status IdentityService::Renew(Call& call, const v1::RenewCertificateRequest& request,
                                    v1::IssuedCertificate* response) {
  RETURN_IF_ERROR(call.Authorize(Resource::Own()));
  const Identity& identity = call.caller().identity;
  const std::string member = MemberName(identity);
  absl::StatusOr<SignedCertificate> issued = absl::InternalError("identity not found");
  const std::string renewed = CertificateSubject(call.caller().issuer, call.caller().serial);
  if (!member.empty()) {
    issued = RenewMember(member, request.csr_pem(), UriOf(call.caller()), renewed);
  } else if (const auto* service = std::get_if<ServiceIdentity>(&identity.name)) {
    issued = authorities_.SignForFleet(*service, request.csr_pem(), service_hosts_,
                                       kServiceValidity, UriOf(call.caller()), renewed);
  } else if (const auto* user = std::get_if<UserIdentity>(&identity.name)) {
    issued = authorities_.SignForFleet(*user, request.csr_pem(), {}, kOperatorValidity,
                                       UriOf(call.caller()), renewed);
  }
  if (issued.ok()) Describe(*issued, response);
  return issued.status();
}

absl::StatusOr<SignedCertificate> IdentityService::RenewMember(const std::string& name,
                                                               const std::string& csr_pem,
                                                               const std::string& asked_by,
                                                               const std::string& renewed) {
  ASSIGN_OR_RETURN(const auto member, store_.GetNode(name));
  if (!member || member->uri != asked_by) return errors::NodeNotEnrolled(name);
  return authorities_.SignForMember(*member, csr_pem, asked_by, renewed);
}

absl::Status IdentityService::Add(Call& call, const v1::AddOperatorRequest& request,
                                  v1::IssuedCertificate* response) {
  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
  RETURN_IF_ERROR(ValidateNewName("operator", request.name()));
  ASSIGN_OR_RETURN(const auto revoked, RevokedSubjects(store_));
  if (revoked.contains(OperatorUri(request.name()))) {
    return errors::OperatorRevoked(request.name());
  }
  const auto issued = authorities_.SignForFleet(UserIdentity{request.name()}, request.csr_pem(), {},
                                                kOperatorValidity, UriOf(call.caller()));
  if (issued.ok()) Describe(*issued, response);
  return issued.status();
}

absl::Status IdentityService::Revoke(Call& call, const v1::RevokeOperatorRequest& request,
                                     v1::Operator* response) {
  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
  if (request.reason().size() > kMaxReason) return errors::TextTooLong("reason", kMaxReason);
  ASSIGN_OR_RETURN(const auto known, store_.NewestIssued(OperatorUri(request.name())));
  if (!known) return errors::OperatorNotFound(request.name());
  // So one operator always remains: the caller.
  if (known->uri == UriOf(call.caller())) return errors::OwnOperator(request.name());
  RevocationRecord revocation;
  revocation.subject = known->uri;
  revocation.reason = request.reason();
  revocation.revoked_by = UriOf(call.caller());
  revocation.at = absl::ToUnixMicros(clock_.Now());
  RETURN_IF_ERROR(store_.ApplyAndWait(muster::Revoke{std::move(revocation)}));
  *response = ToProto(*known, request.name(), true);
  return absl::OkStatus();
}

absl::Status IdentityService::IssueForCommands(Call& call,
                                               const v1::IssueCommandCertificateRequest& request,
                                               v1::CommandCertificate* response) {
  RETURN_IF_ERROR(call.Authorize(Resource::Own()));
  ASSIGN_OR_RETURN(const auto issued,
                   commands_.Issue(call.caller().identity, request.public_key_pem()));
  response->set_uri(UriOf(call.caller()));
  response->set_certificate_chain_pem(issued.ToPem());
  response->set_command_ca_pem(commands_.CaPem());
  *response->mutable_expire_time() = ToTimestamp(absl::ToUnixMicros(issued.NotAfter()));
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, v1::Operator>> IdentityService::Operators() const {
  const std::string prefix = OperatorUri("");
  ASSIGN_OR_RETURN(const auto issued, store_.NewestOfEach(prefix));
  ASSIGN_OR_RETURN(const auto revoked, RevokedSubjects(store_));
  std::map<std::string, v1::Operator> operators;
  for (const IssuedRecord& record : issued) {
    const std::string name = record.uri.substr(prefix.size());
    operators[name] = ToProto(record, name, revoked.contains(record.uri));
  }
  return operators;
}

grpc::ServerUnaryReactor* IdentityService::RenewCertificate(
    grpc::CallbackServerContext* context, const v1::RenewCertificateRequest* request,
    v1::IssuedCertificate* response) {
  return Answer(runtime_, context, "/muster.v1.IdentityService/RenewCertificate",
                {*request, response},
                [this, request, response](Call& call) { return Renew(call, *request, response); });
}

grpc::ServerUnaryReactor* IdentityService::AddOperator(grpc::CallbackServerContext* context,
                                                       const v1::AddOperatorRequest* request,
                                                       v1::IssuedCertificate* response) {
  return Answer(runtime_, context, "/muster.v1.IdentityService/AddOperator", {*request, response},
                [this, request, response](Call& call) { return Add(call, *request, response); });
}

grpc::ServerUnaryReactor* IdentityService::RevokeOperator(grpc::CallbackServerContext* context,
                                                          const v1::RevokeOperatorRequest* request,
                                                          v1::Operator* response) {
  return Answer(runtime_, context, "/muster.v1.IdentityService/RevokeOperator",
                {*request, response},
                [this, request, response](Call& call) { return Revoke(call, *request, response); });
}

grpc::ServerUnaryReactor* IdentityService::ListOperators(grpc::CallbackServerContext* context,
                                                         const v1::ListOperatorsRequest* request,
                                                         v1::ListOperatorsResponse* response) {
  return Answer(runtime_, context, "/muster.v1.IdentityService/ListOperators", {*request, response},
                [this, response](Call& call) -> absl::Status {
                  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
                  ASSIGN_OR_RETURN(const auto operators, Operators());
                  for (const auto& [name, entry] : operators) *response->add_operators() = entry;
                  return absl::OkStatus();
                });
}

grpc::ServerUnaryReactor* IdentityService::IssueCommandCertificate(
    grpc::CallbackServerContext* context, const v1::IssueCommandCertificateRequest* request,
    v1::CommandCertificate* response) {
  return Answer(
      runtime_, context, "/muster.v1.IdentityService/IssueCommandCertificate", {*request, response},
      [this, request, response](Call& call) { return IssueForCommands(call, *request, response); });
}

grpc::ServerUnaryReactor* IdentityService::GetCommandRevocations(
    grpc::CallbackServerContext* context, const v1::GetCommandRevocationsRequest* request,
    v1::CommandRevocations* response) {
  return Answer(runtime_, context, "/muster.v1.IdentityService/GetCommandRevocations",
                {*request, response}, [this, response](Call& call) -> absl::Status {
                  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
                  ASSIGN_OR_RETURN(*response, commands_.Revocations());
                  response->set_command_ca_pem(commands_.CaPem());
                  return absl::OkStatus();
                });
}

}  // namespace muster
