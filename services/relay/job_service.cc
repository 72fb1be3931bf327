#include "services/relay/job_service.h"

#include <memory>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/jobs.h"
#include "services/common/errors/runs.h"
#include "services/common/identity/caller_uri.h"
#include "services/common/identity/signed_command.h"
#include "services/common/rpc/stream.h"
#include "services/relay/jobs/job_request.h"
#include "services/relay/jobs/watch_source.h"

namespace muster {
namespace {

constexpr int kMaxPage = 1'000;
constexpr size_t kUsualPage = 100;

// Returns whether the jobs service may submit and cancel commands with this action.
bool IsOfDeployments(std::string_view action) {
  return action == kDeploymentAction || action == kBuildAction;
}

}  // namespace

absl::StatusOr<JobBoard*> JobService::Allowed(Call& call) const {
  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
  JobBoard* const board = parts_.role.job_board();
  if (board == nullptr) return errors::NotTheRoot(parts_.topology.name());
  return board;
}

grpc::ServerUnaryReactor* JobService::SubmitJob(grpc::CallbackServerContext* context,
                                                const v1::SubmitJobRequest* request,
                                                v1::Job* response) {
  return Answer(streams_, context, "/muster.v1.JobService/SubmitJob", {*request, response},
                [=, this](Call& call) { return Submit(call, *request, response); });
}

// Rejects a command that the nodes would reject. The nodes do not rely on it.
absl::Status JobService::Submit(Call& call, const v1::SubmitJobRequest& request,
                                v1::Job* response) {
  ASSIGN_OR_RETURN(JobBoard* const board, Allowed(call));
  ASSIGN_OR_RETURN(Submission submission, Verify(call, request));
  ASSIGN_OR_RETURN(JobChange submitted,
                   board->Submit(std::move(submission.request), submission.submitter));
  *response = std::move(submitted.job);
  return absl::OkStatus();
}

absl::StatusOr<JobService::Submission> JobService::Verify(
    Call& call, const v1::SubmitJobRequest& request) const {
  const auto authority = parts_.role.command_ca();
  if (!authority) return errors::NoCommandAuthority();
  const Identity& caller = call.caller().identity;
  ASSIGN_OR_RETURN(auto verified,
                   VerifyCommand(request.command(), *authority, caller.fleet, parts_.clock.Now()));
  // The jobs service submits the deployments that operators have signed.
  const bool is_deployment =
      RoleOf(caller) == Role::kJobs && IsOfDeployments(verified.command.action());
  if (!is_deployment && !(verified.signer == caller)) {
    return errors::CommandRefused("it was signed by another than the caller");
  }
  if (parts_.trust.IsRevokedSigner(verified.signer))
    return errors::CommandRefused("its signer was revoked");
  Submission submission;
  ASSIGN_OR_RETURN(submission.request, ReadJobRequest(request));
  ASSIGN_OR_RETURN(submission.submitter, ToUri(verified.signer));
  return submission;
}

grpc::ServerUnaryReactor* JobService::GetJob(grpc::CallbackServerContext* context,
                                             const v1::GetJobRequest* request, v1::Job* response) {
  return Answer(requests_, context, "/muster.v1.JobService/GetJob", {*request, response},
                [=, this](Call& call) {
                  ASSIGN_OR_RETURN(JobBoard* const board, Allowed(call));
                  auto view = board->Get(request->job());
                  if (view.ok()) *response = std::move(view->job);
                  return view.status();
                });
}

grpc::ServerUnaryReactor* JobService::ListJobs(grpc::CallbackServerContext* context,
                                               const v1::ListJobsRequest* request,
                                               v1::ListJobsResponse* response) {
  return Answer(requests_, context, "/muster.v1.JobService/ListJobs", {*request, response},
                [=, this](Call& call) { return List(call, *request, response); });
}

// The token is the last job of the previous page.
absl::Status JobService::List(Call& call, const v1::ListJobsRequest& request,
                              v1::ListJobsResponse* response) const {
  ASSIGN_OR_RETURN(JobBoard* const board, Allowed(call));
  if (request.page_size() < 0 || request.page_size() > kMaxPage) {
    return errors::InvalidPageSize(kMaxPage);
  }
  if (!request.page_token().empty() && !board->Get(request.page_token()).ok()) {
    return errors::InvalidPageToken();
  }
  const size_t limit =
      request.page_size() > 0 ? static_cast<size_t>(request.page_size()) : kUsualPage;
  auto jobs = board->List(request.page_token(), limit + 1);
  const bool more = jobs.size() > limit;
  if (more) jobs.resize(limit);
  if (more) response->set_next_page_token(jobs.back().job());
  for (v1::Job& job : jobs) *response->add_jobs() = std::move(job);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* JobService::CancelJob(grpc::CallbackServerContext* context,
                                                const v1::CancelJobRequest* request,
                                                v1::Job* response) {
  return Answer(requests_, context, "/muster.v1.JobService/CancelJob", {*request, response},
                [=, this](Call& call) -> absl::Status {
                  ASSIGN_OR_RETURN(JobBoard* const board, Allowed(call));
                  auto cancelled = Cancel(call, *board, *request);
                  if (cancelled.ok()) *response = std::move(cancelled->job);
                  return cancelled.status();
                });
}

absl::StatusOr<JobChange> JobService::Cancel(Call& call, JobBoard& board,
                                             const v1::CancelJobRequest& request) const {
  const Identity& caller = call.caller().identity;
  if (RoleOf(caller) == Role::kJobs) return CancelDeployment(call, board, request);
  if (!request.actor().empty() || request.has_submission()) {
    return errors::InvalidCancellation("actor and submission are only for the jobs service");
  }
  return board.Cancel(request.job(), UriOf(call.caller()));
}

// The jobs service cancels for an operator, whom the audit log shows.
absl::StatusOr<JobChange> JobService::CancelDeployment(Call& call, JobBoard& board,
                                                       const v1::CancelJobRequest& request) const {
  const auto actor = ParseIdentity(request.actor(), call.caller().identity.fleet);
  if (!actor.ok() || RoleOf(*actor) != Role::kOperator) {
    return errors::InvalidCancellation(
        absl::StrCat("actor \"", request.actor(), "\" is no operator of the fleet"));
  }
  const auto found = board.Get(request.job());
  if (!found.ok() && request.has_submission()) {
    ASSIGN_OR_RETURN(Submission submission, Verify(call, request.submission()));
    if (submission.request.command.job() != request.job()) return errors::CommandOfOtherJob();
    return board.CancelOrCreate(std::move(submission.request), submission.submitter,
                                request.actor());
  }
  RETURN_IF_ERROR(found.status());
  if (!IsOfDeployments(found->job.action())) return errors::NotADeployment(request.job());
  return board.Cancel(request.job(), request.actor());
}

grpc::ServerWriteReactor<v1::WatchJobResponse>* JobService::WatchJob(
    grpc::CallbackServerContext* context, const v1::WatchJobRequest* request) {
  return StartSourceStream<v1::WatchJobResponse>(
      streams_, context, "/muster.v1.JobService/WatchJob", kWatchStreams,
      [this, request = *request](Call& call, std::function<void()> wake)
          -> absl::StatusOr<std::unique_ptr<StreamSource<v1::WatchJobResponse>>> {
        ASSIGN_OR_RETURN(JobBoard* const board, Allowed(call));
        ASSIGN_OR_RETURN(auto source,
                         JobWatchSource::Open(*board, parts_.files, request, std::move(wake)));
        return source;
      });
}

}  // namespace muster
