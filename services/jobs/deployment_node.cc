#include "services/jobs/deployment_node.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "services/common/jobs/final_record.h"
#include "services/common/templates/outputs.h"

namespace muster {
namespace {

// The reasons of lost commands that run no more. After others, such as DOCKER_UNREACHABLE, the
// container may still run.
constexpr std::string_view kLostAndOver[] = {"AGENT_DIED",          "AGENT_STOPPED",
                                             "CONTAINER_NOT_FOUND", "CONTAINER_NOT_STARTED",
                                             "MACHINE_RESTARTED",   "REPLAYED"};

}  // namespace

bool HasSucceeded(const v1::DeploymentNode& node) {
  const v1::JobRecord::Final& final = node.final();
  return final.outcome() == v1::JOB_OUTCOME_EXITED && final.exit_code() == 0 && final.signal() == 0;
}

// A node reports the outcome of a command that it received. The root relay makes the others: it has
// a reason for none of them, and does not know whether a command that timed out still runs.
Attempt AttemptOf(const v1::DeploymentNode& node) {
  const v1::JobRecord::Final& final = node.final();
  const bool started = node.has_start_time() || !final.records_verified();  // as far as it is known
  switch (final.outcome()) {
    case v1::JOB_OUTCOME_EXITED:
      return HasSucceeded(node) ? Attempt::kSucceeded : Attempt::kFailed;
    case v1::JOB_OUTCOME_UNKNOWN:
    case v1::JOB_OUTCOME_UNREACHABLE:
    case v1::JOB_OUTCOME_REFUSED:
    case v1::JOB_OUTCOME_EXPIRED:
      return Attempt::kNeverStarted;
    case v1::JOB_OUTCOME_CANCELLED:
    case v1::JOB_OUTCOME_FAILED:
      return started ? Attempt::kFailed : Attempt::kNeverStarted;
    case v1::JOB_OUTCOME_LOST:
      return std::ranges::find(kLostAndOver, final.reason()) != std::end(kLostAndOver)
                 ? Attempt::kFailed
                 : Attempt::kUnknown;
    case v1::JOB_OUTCOME_TIMED_OUT:
      return final.reason().empty() ? Attempt::kUnknown : Attempt::kFailed;
    default:
      return Attempt::kUnknown;
  }
}

bool MayReportLater(const v1::DeploymentNode& node) {
  const v1::JobRecord::Final& final = node.final();
  // The outcomes of a node have a reason.
  const bool timed_out = final.outcome() == v1::JOB_OUTCOME_TIMED_OUT &&
                         (final.reason().empty() || final.reason() == "RECORD_REFUSED");
  return timed_out || final.outcome() == v1::JOB_OUTCOME_INDETERMINATE;
}

void ApplyRecord(const v1::JobRecord& record, v1::DeploymentNode* node) {
  switch (record.record_case()) {
    case v1::JobRecord::kStarted:
      *node->mutable_start_time() = record.started().time();
      break;
    case v1::JobRecord::kOutputs:
      if (!node->has_outputs()) *node->mutable_outputs() = record.outputs();  // at most one
      break;
    case v1::JobRecord::kWorkspace:
      if (!node->has_workspace()) *node->mutable_workspace() = record.workspace();  // at most one
      break;
    case v1::JobRecord::kFinal:
      if (MayReportLater(*node)) *node->mutable_earlier() = node->final();
      *node->mutable_final() = record.final();
      node->mutable_final()->clear_signature();
      // The signature of a later final record may cover what the node has sent already.
      if (MayReportLater(*node)) break;
      // Outputs that the node did not sign may be of a relay. A node that was killed in between may
      // have sent the outputs of a container whose end it lost.
      if (!record.final().records_verified() || !HasSucceeded(*node)) node->clear_outputs();
      if (!record.final().records_verified()) node->clear_workspace();
      break;
    default:
      break;
  }
}

void CheckOutputs(const ResolvedDeployment& deployment, v1::DeploymentNode* node) {
  // Outputs of a relay were dropped.
  if (!HasSucceeded(*node) || !node->final().records_verified()) return;
  const std::vector<std::string> faults = FaultsOfOutputs(node->outputs(), deployment);
  if (faults.empty()) return;
  node->clear_outputs();
  SetOutcome(v1::JOB_OUTCOME_FAILED, "OUTPUTS_INVALID",
             absl::StrCat("the node sent outputs that the documents do not admit: ",
                          absl::StrJoin(faults, "; ")),
             node->mutable_final());
}

}  // namespace muster
