#include "services/relay/target_lookup.h"

#include <grpcpp/client_context.h>

#include "muster/v1/enrollment.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/errors/shares.h"
#include "services/common/rpc/status.h"

namespace muster {

absl::Status JudgeTarget(const std::string& name, const absl::Status& status,
                         const v1::EnrolledNode& found) {
  if (ReasonOf(status) == "NODE_NOT_ENROLLED") return errors::TargetNeverJoined(name);
  if (!status.ok()) return status;
  if (found.is_relay()) return errors::TargetIsRelay(name);
  return found.revoked() ? errors::TargetRevoked(name) : absl::OkStatus();
}

absl::Status LookUpTarget(const std::shared_ptr<grpc::Channel>& aggregator, const std::string& name,
                          std::chrono::system_clock::time_point deadline) {
  grpc::ClientContext context;
  context.set_deadline(deadline);
  v1::GetEnrolledNodeRequest request;
  request.set_node(name);
  v1::EnrolledNode found;
  const grpc::Status status =
      v1::EnrollmentService::NewStub(aggregator)->GetEnrolledNode(&context, request, &found);
  return JudgeTarget(name, FromGrpc(status), found);
}

std::map<std::string, std::string, std::less<>> ExplainUnknownTargets(
    const std::shared_ptr<grpc::Channel>& aggregator, const std::vector<std::string>& names,
    std::chrono::system_clock::time_point deadline) {
  std::map<std::string, std::string, std::less<>> explanations;
  for (const std::string& name : names) {
    const absl::Status target = LookUpTarget(aggregator, name, deadline);
    if (!target.ok() && ReasonOf(target) != "TARGET_UNKNOWN") break;
    explanations[name] = target.ok() ? "" : std::string(target.message());
  }
  return explanations;
}

}  // namespace muster
