#include "services/aggregator/join_service.h"

#include "services/aggregator/convert.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/errors.h"
#include "services/common/rpc/status.h"

namespace muster {

JoinService::JoinService(Executor& executor, Joining& joining, const Clock& clock,
                         Addresses addresses, std::string fleet_ca_pem, std::string command_ca_pem,
                         Metrics& metrics)
    : executor_(executor),
      joining_(joining),
      clock_(clock),
      addresses_(std::move(addresses)),
      fleet_ca_pem_(std::move(fleet_ca_pem)),
      command_ca_pem_(std::move(command_ca_pem)),
      joined_(metrics.AddCounter("muster_joins_total",
                                 "Certificates given to machines that joined or returned.")),
      refused_(metrics.AddCounter("muster_joins_refused_total",
                                  "Requests to join or return that were refused.")) {}

template <typename Ask>
grpc::ServerUnaryReactor* JoinService::Answer(grpc::CallbackServerContext* context,
                                              v1::NodeCertificate* response, Ask ask) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const bool posted = executor_.Post([this, response, reactor, peer = context->peer(), ask] {
    const absl::StatusOr<JoinedNode> node = ask();
    if (!node.ok()) {
      refused_.Add();
      Log(LogLevel::kInfo, "a machine may not join", {{"peer", peer}, {"error", node.status()}});
      return reactor->Finish(ToGrpc(node.status()));
    }
    joined_.Add();
    Log(LogLevel::kInfo, "a node has a certificate", {{"node", node->name}, {"peer", peer}});
    response->set_node(node->name);
    response->set_certificate_chain_pem(node->certificate_chain_pem);
    response->set_fleet_ca_pem(fleet_ca_pem_);
    response->set_command_ca_pem(command_ca_pem_);
    *response->mutable_expire_time() = ToTimestamp(absl::ToUnixMicros(node->expires));
    *response->mutable_time() = ToTimestamp(absl::ToUnixMicros(clock_.Now()));
    for (const auto& target : addresses_.aggregator_targets)
      response->add_aggregator_targets(target);
    for (const auto& target : addresses_.status_targets) response->add_status_targets(target);
    for (const auto& target : addresses_.join_targets) response->add_join_targets(target);
    for (const auto& target : addresses_.relay_targets) response->add_relay_targets(target);
    reactor->Finish(grpc::Status::OK);
  });
  if (!posted) reactor->Finish(ToGrpc(errors::Overloaded()));
  return reactor;
}

grpc::ServerUnaryReactor* JoinService::Join(grpc::CallbackServerContext* context,
                                            const v1::JoinRequest* request,
                                            v1::NodeCertificate* response) {
  return Answer(context, response, [this, request] {
    return joining_.Join(request->token_id(), request->node(), request->csr_pem(),
                         request->proof());
  });
}

grpc::ServerUnaryReactor* JoinService::Return(grpc::CallbackServerContext* context,
                                              const v1::ReturnRequest* request,
                                              v1::NodeCertificate* response) {
  return Answer(context, response, [this, request] {
    return joining_.Return(request->certificate_chain_pem(), request->csr_pem(), request->proof());
  });
}

}  // namespace muster
