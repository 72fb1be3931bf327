#include "services/jobs/content_targets.h"

#include <algorithm>

#include "muster/v1/deployments.pb.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/base/status_macros.h"
#include "services/jobs/content_rows.h"
#include "services/jobs/deployment_rows.h"

namespace muster {
namespace {

// Returns whether the command of the request is for this node.
bool IsFor(const v1::CreateDeploymentRequest& request, const std::string& node) {
  if (std::ranges::find(request.nodes(), node) != request.nodes().end()) return true;
  return request.nodes().empty() &&
         Parsed<v1::Command>(request.command().command()).targets().all();
}

}  // namespace

absl::StatusOr<bool> ContentTargets::Contains(int64_t deployment, const std::string& node) {
  {
    MutexLock lock(mutex_);
    if (known_.contains({deployment, node})) return true;
  }
  std::string request;
  RETURN_IF_ERROR(database_.Read([&](sqlite::Connection& db) {
    request = ReadRequest(db, deployment);
    return absl::OkStatus();
  }));
  if (!IsFor(Parsed<v1::CreateDeploymentRequest>(request), node)) return false;
  MutexLock lock(mutex_);
  if (known_.size() >= kMaxRemembered) known_.clear();
  known_.emplace(deployment, node);
  return true;
}

}  // namespace muster
