// muster.v1.EnrollmentService: join tokens and the register of nodes.
#ifndef MUSTER_SERVICES_AGGREGATOR_ENROLLMENT_SERVICE_H_
#define MUSTER_SERVICES_AGGREGATOR_ENROLLMENT_SERVICE_H_

#include <string>
#include <utility>
#include <vector>

#include "muster/v1/enrollment.grpc.pb.h"
#include "services/aggregator/nodes/enrollment.h"
#include "services/common/rpc/call.h"

namespace muster {

// Thread-safe.
class EnrollmentService : public v1::EnrollmentService::CallbackService {
 public:
  // The parameters are the content of tokens: join addresses, the fleet's root and its command
  // authority.
  EnrollmentService(const RpcRuntime& runtime, Enrollment& enrollment,
                    std::vector<std::string> join_targets, std::string fleet_ca_pem,
                    std::string command_ca_pem)
      : runtime_(runtime),
        enrollment_(enrollment),
        join_targets_(std::move(join_targets)),
        fleet_ca_pem_(std::move(fleet_ca_pem)),
        command_ca_pem_(std::move(command_ca_pem)) {}

  grpc::ServerUnaryReactor* CreateJoinToken(grpc::CallbackServerContext* context,
                                            const v1::CreateJoinTokenRequest* request,
                                            v1::CreateJoinTokenResponse* response) override;
  grpc::ServerUnaryReactor* ListJoinTokens(grpc::CallbackServerContext* context,
                                           const v1::ListJoinTokensRequest* request,
                                           v1::ListJoinTokensResponse* response) override;
  grpc::ServerUnaryReactor* RevokeJoinToken(grpc::CallbackServerContext* context,
                                            const v1::RevokeJoinTokenRequest* request,
                                            v1::JoinToken* response) override;
  grpc::ServerUnaryReactor* ListEnrolledNodes(grpc::CallbackServerContext* context,
                                              const v1::ListEnrolledNodesRequest* request,
                                              v1::ListEnrolledNodesResponse* response) override;
  grpc::ServerUnaryReactor* GetEnrolledNode(grpc::CallbackServerContext* context,
                                            const v1::GetEnrolledNodeRequest* request,
                                            v1::EnrolledNode* response) override;
  grpc::ServerUnaryReactor* LabelNode(grpc::CallbackServerContext* context,
                                      const v1::LabelNodeRequest* request,
                                      v1::EnrolledNode* response) override;
  grpc::ServerUnaryReactor* RevokeNode(grpc::CallbackServerContext* context,
                                       const v1::RevokeNodeRequest* request,
                                       v1::EnrolledNode* response) override;
  grpc::ServerUnaryReactor* RemoveNode(grpc::CallbackServerContext* context,
                                       const v1::RemoveNodeRequest* request,
                                       v1::RemoveNodeResponse* response) override;

 private:
  const RpcRuntime runtime_;
  Enrollment& enrollment_;
  const std::vector<std::string> join_targets_;
  const std::string fleet_ca_pem_;
  const std::string command_ca_pem_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_ENROLLMENT_SERVICE_H_
