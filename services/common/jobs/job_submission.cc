#include "services/common/jobs/job_submission.h"

#include <string>
#include <vector>

#include "services/common/base/names.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/identity.h"
#include "services/common/errors/jobs.h"

namespace muster {
namespace {

constexpr int kMaxNodes = 50'000;
constexpr int64_t kMaxWaitSeconds = 315'576'000'000;  // of google.protobuf.Duration
constexpr int32_t kNanosOfSecond = 1'000'000'000;

bool IsWait(const google::protobuf::Duration& wait) {
  return wait.seconds() >= 0 && wait.seconds() <= kMaxWaitSeconds && wait.nanos() >= 0 &&
         wait.nanos() < kNanosOfSecond;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const TargetSet>> CheckSubmission(
    const v1::SubmitJobRequest& message, const v1::Command& command) {
  if (message.nodes_size() > kMaxNodes) {
    return errors::TooManyTargets(message.nodes_size(), kMaxNodes);
  }
  if (message.parallel() < 0) return errors::InvalidJobCommand("parallel is negative");
  if (message.has_wait() && !IsWait(message.wait())) {
    return errors::InvalidJobCommand("wait is negative, or no duration");
  }
  const v1::Command::Targets& signed_targets = command.targets();
  if (signed_targets.all()) {
    if (message.nodes_size() == 0) return nullptr;
    return errors::InvalidJobCommand("it is for all, and names nodes");
  }
  for (const std::string& node : message.nodes()) RETURN_IF_ERROR(ValidateName("node", node));
  auto targets = std::make_shared<const TargetSet>(
      std::vector<std::string>(message.nodes().begin(), message.nodes().end()));
  if (targets->size() == 0) return errors::InvalidJobCommand("it names no node");
  if (targets->root() != signed_targets.nodes_sha256() ||
      static_cast<int64_t>(targets->size()) != signed_targets.count()) {
    return errors::InvalidJobCommand("its nodes are not those that were signed");
  }
  return targets;
}

}  // namespace muster
