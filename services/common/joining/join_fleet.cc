#include "services/common/joining/join_fleet.h"

#include <grpcpp/client_context.h>

#include <chrono>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "muster/v1/join.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/joining.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/identity.h"
#include "services/common/identity/pem_files.h"
#include "services/common/identity/signing_request.h"
#include "services/common/joining/join_targets.h"
#include "services/common/joining/member_file.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/status.h"
#include "services/common/tunnel/tunnels.h"

namespace muster {
namespace {

constexpr std::chrono::seconds kLimit{20};

// Returns the key of an earlier attempt, or a new one.
absl::StatusOr<PrivateKey> KeepKey(const std::string& path) {
  auto key = ReadKeyFile(path);
  if (!absl::IsNotFound(key.status())) return key;
  key = PrivateKey::Generate();
  if (!key.ok()) return key;
  ASSIGN_OR_RETURN(const auto pem, key->ToPkcs8Pem());
  RETURN_IF_ERROR(WriteFileAtomically(path, pem.view()));
  return key;
}

absl::StatusOr<v1::JoinRequest> MakeRequest(const JoinToken& token, const std::string& node,
                                            const RelayAddresses& addresses,
                                            const PrivateKey& key) {
  ASSIGN_OR_RETURN(const auto token_key, PrivateKey::FromPem(token.private_key_pem.view()));
  ASSIGN_OR_RETURN(const auto csr, CreateSigningRequest(key));
  ASSIGN_OR_RETURN(const auto proof, token_key.Sign(JoinProofText(token.id, node, csr)));
  v1::JoinRequest request;
  request.set_token_id(token.id);
  request.set_node(node);
  request.set_csr_pem(csr);
  request.set_proof(proof);
  request.mutable_relay_targets()->Assign(addresses.relay_targets.begin(),
                                          addresses.relay_targets.end());
  request.mutable_join_targets()->Assign(addresses.join_targets.begin(),
                                         addresses.join_targets.end());
  return request;
}

// Checks that the certificate is for our key and name, and from the token's fleet.
absl::Status Check(const v1::NodeCertificate& answer, const JoinToken& token,
                   const PrivateKey& key) {
  const auto chain = ParseChain(answer.certificate_chain_pem());
  if (!chain.ok()) return errors::JoinAnswerUnusable(std::string(chain.status().message()));
  ASSIGN_OR_RETURN(const auto root, Certificate::FromPem(token.fleet_ca_pem));
  if (!chain->front().Matches(key))
    return errors::JoinAnswerUnusable("it is a certificate for another key");
  const auto uri = chain->front().Uri();
  if (!uri.ok()) return errors::JoinAnswerUnusable(std::string(uri.status().message()));
  const auto identity = ParseIdentity(*uri, token.fleet);
  const Identity::Name wanted =
      token.relay ? Identity::Name(ServiceIdentity{ServiceRole::kRelay, answer.node()})
                  : Identity::Name(NodeIdentity{answer.node()});
  if (!identity.ok() || identity->name != wanted) {
    return errors::JoinAnswerUnusable("it is a certificate for another name");
  }
  const Certificate roots[] = {root};
  const absl::Status trusted =
      VerifyChain(chain->front(), std::span(*chain).subspan(1), roots,
                  token.relay ? Usage::kClientAndServer : Usage::kClient, absl::Now());
  return trusted.ok() ? trusted : errors::JoinAnswerUnusable(std::string(trusted.message()));
}

absl::StatusOr<v1::NodeCertificate> Ask(const JoinToken& token, const PrivateKey& key,
                                        const v1::JoinRequest& request, const std::string& link) {
  SetTunnelRoot(token.fleet_ca_pem);
  const auto credentials = MakeOpenChannelCredentials(
      token.fleet, token.fleet_ca_pem, {ServiceRole::kAggregator, ServiceRole::kRelay});
  const auto ask = [&](const std::string& target) -> absl::StatusOr<v1::NodeCertificate> {
    const auto stub = v1::JoinService::NewStub(MakeJoinChannel(target, credentials));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLimit);
    v1::NodeCertificate certificate;
    absl::Status status = FromGrpc(stub->Join(&context, request, &certificate));
    if (status.ok()) status = Check(certificate, token, key);
    if (!status.ok()) return Annotate(status, absl::StrCat("join at ", target));
    return certificate;
  };
  const auto targets = TargetsByLink(token.join_targets, link);
  if (targets.empty())
    return errors::InvalidTokenFile("all join_targets are tunnels, and the link is direct");
  return AskJoinTargets(targets, ask);
}

MemberFile ToMember(const v1::NodeCertificate& answer, const JoinToken& token,
                    const std::string& link) {
  const auto list = [](const auto& targets) {
    return std::vector<std::string>(targets.begin(), targets.end());
  };
  MemberFile member;
  member.fleet = token.fleet;
  member.name = answer.node();
  member.is_relay = token.relay;
  member.aggregator_targets = list(answer.aggregator_targets());
  member.status_targets = list(answer.status_targets());
  member.join_targets = list(answer.join_targets());
  member.token_targets = token.join_targets;
  member.relay_targets = list(answer.relay_targets());
  member.link = link;
  return member;
}

// Writes the certificate last: with it the machine has joined.
absl::Status Keep(const v1::NodeCertificate& answer, const JoinToken& token,
                  const std::string& folder, const std::string& link) {
  absl::Status s =
      WriteFileAtomically(absl::StrCat(folder, "/tls/ca.pem"), token.fleet_ca_pem, 0644);
  if (s.ok() && !token.command_ca_pem.empty()) {
    s = WriteFileAtomically(absl::StrCat(folder, "/command-ca.pem"), token.command_ca_pem, 0644);
  }
  if (s.ok()) s = WriteMemberFile(folder, ToMember(answer, token, link));
  if (!s.ok()) return s;
  return WriteFileAtomically(absl::StrCat(folder, "/tls/cert.pem"), answer.certificate_chain_pem(),
                             0644);
}

absl::StatusOr<MemberJoined> JoinInto(const JoinToken& token, const std::string& name,
                                      const RelayAddresses& addresses, const std::string& folder,
                                      const std::string& link) {
  RETURN_IF_ERROR(CheckLink(link));
  const std::string tls = absl::StrCat(folder, "/tls");
  RETURN_IF_ERROR(MakeFolders(PosixFileOps(), tls));
  if (!absl::IsNotFound(ReadFileBounded(tls + "/cert.pem", kMaxSecretFile).status())) {
    return errors::AlreadyJoined(folder);
  }
  ASSIGN_OR_RETURN(const auto key, KeepKey(tls + "/key.pem"));
  ASSIGN_OR_RETURN(const auto request, MakeRequest(token, name, addresses, key));
  ASSIGN_OR_RETURN(const auto answer, Ask(token, key, request, link));
  RETURN_IF_ERROR(Keep(answer, token, folder, link));
  return MemberJoined{answer.node(), absl::FromUnixSeconds(answer.expire_time().seconds())};
}

}  // namespace

absl::StatusOr<MemberJoined> JoinFleet(const JoinToken& token, const std::string& node,
                                       const std::string& folder, const std::string& link) {
  if (token.relay) return errors::TokenIsForRelay();
  return JoinInto(token, node, {}, folder, link);
}

absl::StatusOr<MemberJoined> JoinAsRelay(const JoinToken& token, const RelayAddresses& addresses,
                                         const std::string& folder, const std::string& link) {
  if (!token.relay) return errors::TokenIsForNode();
  return JoinInto(token, token.node, addresses, folder, link);
}

}  // namespace muster
