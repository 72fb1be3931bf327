#include "services/jobs/deployment_audit.h"

#include "absl/strings/str_cat.h"
#include "services/common/rpc/proto_time.h"
#include "services/jobs/audit_outbox.h"

namespace muster {

void AddCreationRecord(sqlite::Connection& db, const v1::Deployment& deployment,
                       const v1::CreateDeploymentRequest& request, const std::string& vouched_by) {
  const std::string& subject =
      deployment.template_().empty() ? deployment.type() : deployment.template_();
  std::string detail = absl::StrCat(subject, deployment.has_build()
                                                 ? ", a build"
                                                 : absl::StrCat(", action ", deployment.action()));
  if (request.nodes().empty()) {
    absl::StrAppend(&detail, ", for all nodes");
  } else {
    absl::StrAppend(&detail, ", for ", request.nodes_size(),
                    request.nodes_size() == 1 ? " node" : " nodes");
  }
  if (deployment.has_workspace()) {
    absl::StrAppend(&detail, ", with workspace ", deployment.workspace().workspace());
  }
  if (!deployment.retry_of().empty()) {
    absl::StrAppend(&detail, ", a retry of ", deployment.retry_of());
  }
  if (!deployment.destroys().empty()) {
    absl::StrAppend(&detail, ", which destroys ", deployment.destroys());
  }
  if (request.skip_conformance()) {
    absl::StrAppend(&detail, ", without the check of conformance");
  }
  AddAuditRecord(db, v1::AUDIT_KIND_DEPLOYMENT, {deployment.created_by(), vouched_by},
                 deployment.deployment(), "created", detail, FromProto(deployment.create_time()));
}

}  // namespace muster
