#include "services/relay/job_service.h"

#include <memory>
#include <utility>

#include "services/common/errors.h"
#include "services/common/identity/signed_command.h"
#include "services/common/rpc/stream.h"
#include "services/relay/errors.h"
#include "services/relay/jobs/job_request.h"
#include "services/relay/jobs/watch_source.h"

namespace muster {
namespace {

constexpr int kMaxPage = 1'000;
constexpr size_t kUsualPage = 100;

}  // namespace

absl::Status JobService::Allowed(Call& call) const {
  if (absl::Status s = call.Authorize(Resource::Fleet()); !s.ok()) return s;
  return parts_.board == nullptr ? errors::NotTheRoot(parts_.relay) : absl::OkStatus();
}

grpc::ServerUnaryReactor* JobService::SubmitJob(grpc::CallbackServerContext* context,
                                                const v1::SubmitJobRequest* request,
                                                v1::Job* response) {
  return Answer(requests_, context, "/muster.v1.JobService/SubmitJob",
                [=, this](Call& call) { return Submit(call, *request, response); });
}

// What a node would refuse is refused here too, before it is handed to thousands. The node does not
// rely on it.
absl::Status JobService::Submit(Call& call, const v1::SubmitJobRequest& request,
                                v1::Job* response) {
  if (absl::Status s = Allowed(call); !s.ok()) return s;
  const auto authority = parts_.command_ca();
  if (!authority) return errors::NoCommandAuthority();
  const Identity& caller = call.caller().identity;
  auto verified = VerifyCommand(request.command(), *authority, caller.fleet, parts_.clock.Now());
  if (!verified.ok()) return verified.status();
  if (!(verified->signer == caller)) {
    return errors::CommandRefused("it was signed by another than the caller");
  }
  if (parts_.is_revoked(verified->signer)) return errors::CommandRefused("its signer was revoked");
  auto read = ReadJobRequest(request);
  if (!read.ok()) return read.status();
  const auto uri = ToUri(caller);
  if (!uri.ok()) return uri.status();
  auto job = parts_.board->Submit(*std::move(read), *uri);
  if (!job.ok()) return job.status();
  *response = *std::move(job);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* JobService::GetJob(grpc::CallbackServerContext* context,
                                             const v1::GetJobRequest* request, v1::Job* response) {
  return Answer(requests_, context, "/muster.v1.JobService/GetJob", [=, this](Call& call) {
    if (absl::Status s = Allowed(call); !s.ok()) return s;
    auto view = parts_.board->Get(request->job());
    if (view.ok()) *response = std::move(view->job);
    return view.status();
  });
}

grpc::ServerUnaryReactor* JobService::ListJobs(grpc::CallbackServerContext* context,
                                               const v1::ListJobsRequest* request,
                                               v1::ListJobsResponse* response) {
  return Answer(requests_, context, "/muster.v1.JobService/ListJobs",
                [=, this](Call& call) { return List(call, *request, response); });
}

// The token is the last job of the page before.
absl::Status JobService::List(Call& call, const v1::ListJobsRequest& request,
                              v1::ListJobsResponse* response) const {
  if (absl::Status s = Allowed(call); !s.ok()) return s;
  if (request.page_size() < 0 || request.page_size() > kMaxPage) {
    return errors::InvalidPageSize(kMaxPage);
  }
  if (!request.page_token().empty() && !parts_.board->Get(request.page_token()).ok()) {
    return errors::InvalidPageToken();
  }
  const size_t limit =
      request.page_size() > 0 ? static_cast<size_t>(request.page_size()) : kUsualPage;
  auto jobs = parts_.board->List(request.page_token(), limit + 1);
  const bool more = jobs.size() > limit;
  if (more) jobs.resize(limit);
  if (more) response->set_next_page_token(jobs.back().job());
  for (v1::Job& job : jobs) *response->add_jobs() = std::move(job);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* JobService::CancelJob(grpc::CallbackServerContext* context,
                                                const v1::CancelJobRequest* request,
                                                v1::Job* response) {
  return Answer(requests_, context, "/muster.v1.JobService/CancelJob", [=, this](Call& call) {
    if (absl::Status s = Allowed(call); !s.ok()) return s;
    auto job = parts_.board->Cancel(request->job());
    if (job.ok()) *response = *std::move(job);
    return job.status();
  });
}

grpc::ServerWriteReactor<v1::WatchJobResponse>* JobService::WatchJob(
    grpc::CallbackServerContext* context, const v1::WatchJobRequest* request) {
  return StreamReactor<v1::WatchJobResponse>::Start(
      streams_, context, "/muster.v1.JobService/WatchJob",
      [this, request = *request](Call& call, std::function<void()> wake)
          -> absl::StatusOr<std::unique_ptr<StreamSource<v1::WatchJobResponse>>> {
        if (absl::Status s = Allowed(call); !s.ok()) return s;
        auto source = JobWatchSource::Open(*parts_.board, parts_.files, request, std::move(wake));
        if (!source.ok()) return source.status();
        return *std::move(source);
      });
}

}  // namespace muster
