#include "services/relay/jobs/job_request.h"

#include <algorithm>
#include <utility>

#include "services/common/base/status_macros.h"
#include "services/common/errors/jobs.h"
#include "services/common/jobs/job_submission.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

// Less than a way through the tree would end before attached nodes get the command.
constexpr absl::Duration kMinWait = absl::Seconds(1);

}  // namespace

absl::Duration JobRequest::begin_within() const {
  return FromProto(command.not_after()) - FromProto(command.not_before());
}

absl::Duration JobRequest::wait() const {
  const absl::Duration asked = message.has_wait() ? FromProto(message.wait()) : kDefaultWait;
  return std::min(std::max(asked, kMinWait), begin_within());
}

v1::JobCommand JobRequest::For(const std::vector<std::string>& nodes, absl::Duration begin_within,
                               absl::Duration wait_within) const {
  v1::JobCommand out;
  out.set_job(command.job());
  *out.mutable_command() = message.command();
  for (const std::string& node : nodes) {
    v1::JobCommand::Target& target = *out.add_targets();
    target.set_node(node);
    if (targets == nullptr) continue;
    const auto& names = targets->names();
    const auto at = std::lower_bound(names.begin(), names.end(), node) - names.begin();
    target.set_index(at);
    for (std::string& sibling : targets->Proof(static_cast<size_t>(at))) {
      target.add_proof(std::move(sibling));
    }
  }
  ToProto(std::max(begin_within, absl::ZeroDuration()), out.mutable_begin_within());
  ToProto(std::max(wait_within, absl::ZeroDuration()), out.mutable_wait_within());
  ToProto(FromProto(command.time_limit()), out.mutable_end_within());
  return out;
}

absl::StatusOr<JobRequest> ReadJobRequest(v1::SubmitJobRequest message) {
  JobRequest request;
  if (!request.command.ParseFromString(message.command().command())) {
    return errors::InvalidJobCommand("it is not a serialised Command");
  }
  ASSIGN_OR_RETURN(request.targets, CheckSubmission(message, request.command));
  request.message = std::move(message);
  return request;
}

}  // namespace muster
