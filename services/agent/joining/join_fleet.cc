#include "services/agent/joining/join_fleet.h"

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
#include "nlohmann/json.hpp"
#include "services/common/base/error.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/secret_file.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/identity.h"
#include "services/common/identity/pem_files.h"
#include "services/common/identity/signing_request.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/status.h"

namespace muster {
namespace {

constexpr std::chrono::seconds kLimit{20};

absl::Status Unusable(const std::string& why) {
  return MakeError(absl::StatusCode::kUnauthenticated, "JOIN_ANSWER_UNUSABLE",
                   absl::StrCat("what the fleet answered cannot be used: ", why),
                   "Join again; if that stays, ask an operator for a new token.");
}

// The key of an earlier try, or a new one.
absl::StatusOr<PrivateKey> KeepKey(const std::string& path) {
  auto key = ReadKeyFile(path);
  if (!absl::IsNotFound(key.status())) return key;
  key = PrivateKey::Generate();
  if (!key.ok()) return key;
  const auto pem = key->ToPkcs8Pem();
  if (!pem.ok()) return pem.status();
  if (absl::Status s = WriteFileAtomically(path, pem->view()); !s.ok()) return s;
  return key;
}

absl::StatusOr<v1::NodeCertificate> Ask(const JoinToken& token, const std::string& node,
                                        const PrivateKey& key) {
  const auto token_key = PrivateKey::FromPem(token.private_key_pem.view());
  if (!token_key.ok()) return token_key.status();
  const auto csr = CreateSigningRequest(key);
  if (!csr.ok()) return csr.status();
  const auto proof = token_key->Sign(JoinProofText(token.id, node, *csr));
  if (!proof.ok()) return proof.status();
  v1::JoinRequest request;
  request.set_token_id(token.id);
  request.set_node(node);
  request.set_csr_pem(*csr);
  request.set_proof(*proof);

  const auto credentials = MakeOpenChannelCredentials(
      token.fleet, token.fleet_ca_pem, {ServiceRole::kAggregator, ServiceRole::kRelay});
  absl::Status failure;
  for (const std::string& target : token.join_targets) {
    const auto stub = v1::JoinService::NewStub(MakeChannel(target, credentials));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLimit);
    v1::NodeCertificate certificate;
    const absl::Status status = FromGrpc(stub->Join(&context, request, &certificate));
    if (status.ok()) return certificate;
    failure = Annotate(status, absl::StrCat("join at ", target));
    if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) break;
  }
  return failure;
}

// Whether the certificate is for our key and name, and of the token's fleet.
absl::Status Check(const v1::NodeCertificate& answer, const JoinToken& token,
                   const PrivateKey& key) {
  const auto chain = ParseChain(answer.certificate_chain_pem());
  if (!chain.ok()) return Unusable(std::string(chain.status().message()));
  const auto root = Certificate::FromPem(token.fleet_ca_pem);
  if (!root.ok()) return root.status();
  if (!chain->front().Matches(key)) return Unusable("it is a certificate for another key");
  const auto uri = chain->front().Uri();
  if (!uri.ok()) return Unusable(std::string(uri.status().message()));
  const auto identity = ParseIdentity(*uri, token.fleet);
  if (!identity.ok() || identity->name != Identity::Name(NodeIdentity{answer.node()})) {
    return Unusable("it is a certificate for another name");
  }
  const Certificate roots[] = {*root};
  const absl::Status trusted =
      VerifyChain(chain->front(), std::span(*chain).subspan(1), roots, Usage::kClient, absl::Now());
  return trusted.ok() ? trusted : Unusable(std::string(trusted.message()));
}

std::string NodeJson(const v1::NodeCertificate& answer, const JoinToken& token) {
  const auto list = [](const auto& targets) {
    return std::vector<std::string>(targets.begin(), targets.end());
  };
  nlohmann::ordered_json json;
  json["fleet"] = token.fleet;
  json["node"] = answer.node();
  json["aggregator_targets"] = list(answer.aggregator_targets());
  json["status_targets"] = list(answer.status_targets());
  json["join_targets"] = list(answer.join_targets());
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

absl::StatusOr<NodeJoined> JoinFleet(const JoinToken& token, const std::string& node,
                                     const std::string& folder) {
  const std::string tls = absl::StrCat(folder, "/tls");
  if (absl::Status s = MakeFolders(PosixFileOps(), tls); !s.ok()) return s;
  const std::string certificate = absl::StrCat(tls, "/cert.pem");
  if (!absl::IsNotFound(ReadFileBounded(certificate, kMaxSecretFile).status())) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "ALREADY_JOINED",
                     absl::StrCat(folder, " holds the identity of a node already"),
                     "To join anew, remove that folder first, or name another: --folder.");
  }
  const auto key = KeepKey(absl::StrCat(tls, "/key.pem"));
  if (!key.ok()) return key.status();
  const auto answer = Ask(token, node, *key);
  if (!answer.ok()) return answer.status();
  if (absl::Status s = Check(*answer, token, *key); !s.ok()) return s;
  // The certificate comes last: with it the node has joined.
  absl::Status s = WriteFileAtomically(absl::StrCat(tls, "/ca.pem"), token.fleet_ca_pem, 0644);
  if (s.ok()) {
    s = WriteFileAtomically(absl::StrCat(folder, "/node.json"), NodeJson(*answer, token), 0644);
  }
  if (s.ok()) s = WriteFileAtomically(certificate, answer->certificate_chain_pem(), 0644);
  if (!s.ok()) return s;
  return NodeJoined{answer->node(), absl::FromUnixSeconds(answer->expire_time().seconds())};
}

}  // namespace muster
