#include "services/common/joining/join_targets.h"

#include <string_view>

#include "services/common/base/log.h"
#include "services/common/rpc/channel_target.h"
#include "services/common/rpc/connection_error.h"

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
  bool allowed = IsTunnel(std::string_view(targets.front()));
  for (const std::string& target : targets) {
    if (IsTunnel(std::string_view(target)) && !allowed) continue;
    if (IsTunnel(std::string_view(target)) && !IsTunnel(std::string_view(targets.front()))) {
      Log(LogLevel::kWarning, "a proxy prevents the connection: a tunnel is used",
          {{"tunnel", target}, {"reason", failure}});
    }
    auto answer = ask(target);
    if (answer.ok()) return answer;
    allowed = allowed || AllowsTunnel(answer.status());
    if (WeightOf(answer.status()) >= WeightOf(failure)) failure = answer.status();
  }
  return failure;
}

}  // namespace muster
