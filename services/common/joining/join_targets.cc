#include "services/common/joining/join_targets.h"

namespace muster {
namespace {

// How much a failure says about the request.
enum class Weight { kNoAnswer, kRefusal, kOtherAnswer };

Weight WeightOf(const absl::Status& status) {
  if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) return Weight::kNoAnswer;
  return IsJoinRefusal(status) ? Weight::kRefusal : Weight::kOtherAnswer;
}

}  // namespace

bool IsJoinRefusal(const absl::Status& status) {
  return absl::IsPermissionDenied(status) || absl::IsUnauthenticated(status) ||
         absl::IsInvalidArgument(status);
}

absl::StatusOr<v1::NodeCertificate> AskJoinTargets(
    const std::vector<std::string>& targets,
    absl::FunctionRef<absl::StatusOr<v1::NodeCertificate>(const std::string& target)> ask) {
  absl::Status failure = absl::UnavailableError("no join target");
  for (const std::string& target : targets) {
    auto answer = ask(target);
    if (answer.ok()) return answer;
    if (WeightOf(answer.status()) >= WeightOf(failure)) failure = answer.status();
  }
  return failure;
}

}  // namespace muster
