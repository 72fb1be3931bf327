// muster.v1.IdentityService: certificates of the fleet, operators, revocation.
#ifndef MUSTER_SERVICES_AGGREGATOR_IDENTITY_SERVICE_H_
#define MUSTER_SERVICES_AGGREGATOR_IDENTITY_SERVICE_H_

#include <map>
#include <string>
#include <vector>

#include "muster/v1/identities.grpc.pb.h"
#include "services/aggregator/addresses.h"
#include "services/aggregator/nodes/command_trust.h"
#include "services/aggregator/runs/authorities.h"
#include "services/common/base/clock.h"
#include "services/common/rpc/call.h"
#include "services/common/store/state_store.h"

namespace muster {

// Thread-safe.
class IdentityService : public v1::IdentityService::CallbackService {
 public:
  // `service_hosts`: the hosts in the certificates of services.
  IdentityService(const RpcRuntime& runtime, Authorities& authorities, CommandTrust& commands,
                  StateStore& store, const Clock& clock, Addresses addresses,
                  std::vector<std::string> service_hosts)
      : runtime_(runtime),
        authorities_(authorities),
        commands_(commands),
        store_(store),
        clock_(clock),
        addresses_(std::move(addresses)),
        service_hosts_(std::move(service_hosts)) {}

  grpc::ServerUnaryReactor* RenewCertificate(grpc::CallbackServerContext* context,
                                             const v1::RenewCertificateRequest* request,
                                             v1::IssuedCertificate* response) override;
  grpc::ServerUnaryReactor* AddOperator(grpc::CallbackServerContext* context,
                                        const v1::AddOperatorRequest* request,
                                        v1::IssuedCertificate* response) override;
  grpc::ServerUnaryReactor* RevokeOperator(grpc::CallbackServerContext* context,
                                           const v1::RevokeOperatorRequest* request,
                                           v1::Operator* response) override;
  grpc::ServerUnaryReactor* ListOperators(grpc::CallbackServerContext* context,
                                          const v1::ListOperatorsRequest* request,
                                          v1::ListOperatorsResponse* response) override;
  grpc::ServerUnaryReactor* IssueCommandCertificate(
      grpc::CallbackServerContext* context, const v1::IssueCommandCertificateRequest* request,
      v1::CommandCertificate* response) override;
  grpc::ServerUnaryReactor* GetCommandRevocations(grpc::CallbackServerContext* context,
                                                  const v1::GetCommandRevocationsRequest* request,
                                                  v1::CommandRevocations* response) override;

 private:
  absl::Status Renew(Call& call, const v1::RenewCertificateRequest& request,
                     v1::IssuedCertificate* response);
  absl::StatusOr<SignedCertificate> RenewMember(const std::string& name, const std::string& csr_pem,
                                                const std::string& asked_by,
                                                const std::string& renewed);
  absl::Status Add(Call& call, const v1::AddOperatorRequest& request,
                   v1::IssuedCertificate* response);
  absl::Status IssueForCommands(Call& call, const v1::IssueCommandCertificateRequest& request,
                                v1::CommandCertificate* response);
  absl::Status Revoke(Call& call, const v1::RevokeOperatorRequest& request, v1::Operator* response);
  // Returns the operators by name, with their revocation.
  absl::StatusOr<std::map<std::string, v1::Operator>> Operators() const;
  std::string OperatorUri(const std::string& name) const;
  void Describe(const SignedCertificate& certificate, v1::IssuedCertificate* response) const;

  const RpcRuntime runtime_;
  Authorities& authorities_;
  CommandTrust& commands_;
  StateStore& store_;
  const Clock& clock_;
  const Addresses addresses_;
  const std::vector<std::string> service_hosts_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_IDENTITY_SERVICE_H_
