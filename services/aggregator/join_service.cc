#include "services/aggregator/join_service.h"

#include "services/aggregator/convert.h"
#include "services/aggregator/nodes/parents.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/runs.h"
#include "services/common/identity/caller_uri.h"
#include "services/common/rpc/peer.h"
#include "services/common/rpc/status.h"

namespace muster {
namespace {

using Targets = google::protobuf::RepeatedPtrField<std::string>;

void Append(const std::vector<std::string>& from, Targets* to) {
  for (const std::string& target : from) *to->Add() = target;
}

}  // namespace

JoinHandler::JoinHandler(Joining& joining, StateStore& store, const Clock& clock,
                         Addresses addresses, std::string fleet_ca_pem, std::string command_ca_pem,
                         Metrics& metrics)
    : joining_(joining),
      store_(store),
      clock_(clock),
      addresses_(std::move(addresses)),
      fleet_ca_pem_(std::move(fleet_ca_pem)),
      command_ca_pem_(std::move(command_ca_pem)),
      joined_(metrics.AddCounter("muster_joins_total",
                                 "Certificates issued to machines that joined or rejoined.")),
      refused_(metrics.AddCounter("muster_joins_refused_total",
                                  "Requests to join or rejoin that were refused.")) {}

absl::Status JoinHandler::Join(const std::string& peer, const v1::JoinRequest& request,
                               v1::NodeCertificate* response) {
  JoinParameters parameters;
  parameters.token_id = request.token_id();
  parameters.name = request.node();
  parameters.csr_pem = request.csr_pem();
  parameters.proof = request.proof();
  parameters.relay_targets.assign(request.relay_targets().begin(), request.relay_targets().end());
  parameters.join_targets.assign(request.join_targets().begin(), request.join_targets().end());
  return Answer(peer, joining_.Join(parameters), response);
}

absl::Status JoinHandler::Rejoin(const std::string& peer, const v1::RejoinRequest& request,
                                 v1::NodeCertificate* response) {
  return Answer(
      peer, joining_.Rejoin(request.certificate_chain_pem(), request.csr_pem(), request.proof()),
      response);
}

absl::Status JoinHandler::Answer(const std::string& peer,
                                 const absl::StatusOr<JoinedMember>& member,
                                 v1::NodeCertificate* response) {
  if (!member.ok()) {
    refused_.Add();
    LogLimited(LogLevel::kInfo, "join refused", PeerAddress(peer),
               {{"peer", peer}, {"error", member.status()}});
    return member.status();
  }
  ASSIGN_OR_RETURN(const auto parents, FindParentTargets(store_, member->parents));
  joined_.Add();
  Log(LogLevel::kInfo,
      member->relay ? "certificate issued to a relay" : "certificate issued to a node",
      {{"node", member->name}, {"peer", peer}});
  response->set_node(member->name);
  response->set_is_relay(member->relay);
  response->set_certificate_chain_pem(member->certificate_chain_pem);
  response->set_fleet_ca_pem(fleet_ca_pem_);
  response->set_command_ca_pem(command_ca_pem_);
  *response->mutable_expire_time() = ToTimestamp(absl::ToUnixMicros(member->expires));
  *response->mutable_time() = ToTimestamp(absl::ToUnixMicros(clock_.Now()));
  Append(addresses_.aggregator_targets, response->mutable_aggregator_targets());
  Append(addresses_.status_targets, response->mutable_status_targets());
  Append(parents.join_targets, response->mutable_join_targets());
  Append(addresses_.join_targets, response->mutable_join_targets());
  Append(addresses_.tunnel_targets, response->mutable_join_targets());
  Append(parents.relay_targets, response->mutable_relay_targets());
  Append(addresses_.relay_targets, response->mutable_relay_targets());
  Append(addresses_.tunnel_targets, response->mutable_relay_targets());
  return absl::OkStatus();
}

template <typename Ask>
grpc::ServerUnaryReactor* JoinService::Answer(grpc::CallbackServerContext* context, Ask ask) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const std::string peer = context->peer();
  const bool posted = executor_.Post(PeerAddress(peer),
                                     [reactor, ask, peer] { reactor->Finish(ToGrpc(ask(peer))); });
  if (!posted) reactor->Finish(ToGrpc(errors::Overloaded()));
  return reactor;
}

grpc::ServerUnaryReactor* JoinService::Join(grpc::CallbackServerContext* context,
                                            const v1::JoinRequest* request,
                                            v1::NodeCertificate* response) {
  return Answer(context, [this, request, response](const std::string& peer) {
    return answers_.Join(peer, *request, response);
  });
}

grpc::ServerUnaryReactor* JoinService::Rejoin(grpc::CallbackServerContext* context,
                                              const v1::RejoinRequest* request,
                                              v1::NodeCertificate* response) {
  return Answer(context, [this, request, response](const std::string& peer) {
    return answers_.Rejoin(peer, *request, response);
  });
}

grpc::ServerUnaryReactor* RelayedJoinService::Join(grpc::CallbackServerContext* context,
                                                   const v1::JoinRequest* request,
                                                   v1::NodeCertificate* response) {
  return Answer(runtime_, context, "/muster.v1.JoinService/Join", {*request, response},
                [this, request, response](Call& call) -> absl::Status {
                  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
                  return answers_.Join(UriOf(call.caller()), *request, response);
                });
}

grpc::ServerUnaryReactor* RelayedJoinService::Rejoin(grpc::CallbackServerContext* context,
                                                     const v1::RejoinRequest* request,
                                                     v1::NodeCertificate* response) {
  return Answer(runtime_, context, "/muster.v1.JoinService/Rejoin", {*request, response},
                [this, request, response](Call& call) -> absl::Status {
                  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
                  return answers_.Rejoin(UriOf(call.caller()), *request, response);
                });
}

}  // namespace muster
