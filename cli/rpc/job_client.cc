#include "cli/rpc/job_client.h"

#include <grpcpp/client_context.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/rpc/operator_channel.h"
#include "cli/rpc/retry_period.h"
#include "cli/rpc/unary_call.h"
#include "cli/rpc/watch_retry.h"
#include "muster/v1/attachment.grpc.pb.h"
#include "muster/v1/jobs.grpc.pb.h"
#include "services/common/base/status_macros.h"
#include "services/common/identity/identity.h"
#include "services/common/rpc/call_end.h"
#include "services/common/rpc/connection_error.h"

namespace muster::cli {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(500);
constexpr absl::Duration kReadLimit = absl::Seconds(10);

// Returns true if a service may have handled a call that failed so.
bool MayHaveEffect(const absl::Status& failure) {
  switch (failure.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnimplemented:
      return false;
    default:
      return !IsUnconnected(failure);
  }
}

}  // namespace

struct JobClient::Stubs {
  std::unique_ptr<v1::JobService::Stub> jobs;
  std::unique_ptr<v1::AttachService::Stub> attachment;
  std::string relay;  // for messages
};

JobClient::JobClient(const OperatorContext& context) : stubs_(std::make_unique<Stubs>()) {
  const auto relay = MakeOperatorChannel(context, context.relay_targets, ServiceRole::kRelay);
  stubs_->jobs = v1::JobService::NewStub(relay);
  stubs_->attachment = v1::AttachService::NewStub(relay);
  stubs_->relay = absl::StrCat("the relay at ", absl::StrJoin(context.relay_targets, ", "));
}

JobClient::~JobClient() = default;

absl::StatusOr<v1::Job> JobClient::Submit(CommandForNodes command, v1::SubmitJobRequest request,
                                          bool* may_run) {
  *may_run = false;
  *request.mutable_command() = std::move(command.command);
  request.mutable_nodes()->Assign(command.nodes.begin(), command.nodes.end());
  const RetryPeriod period;
  while (true) {
    auto job = CallUnary(*stubs_->jobs, &v1::JobService::Stub::SubmitJob, request, stubs_->relay,
                         {.retry_for = absl::ZeroDuration()});
    if (job.ok()) return job;
    *may_run = *may_run || MayHaveEffect(job.status());
    if (!absl::IsUnavailable(job.status()) || !period.Pause()) return job;
  }
}

absl::StatusOr<v1::Job> JobClient::Get(const std::string& job) {
  v1::GetJobRequest request;
  request.set_job(job);
  return CallUnary(*stubs_->jobs, &v1::JobService::Stub::GetJob, request,
                   absl::StrCat("job ", job, " at ", stubs_->relay));
}

absl::StatusOr<v1::ListJobsResponse> JobClient::List(const v1::ListJobsRequest& request) {
  return CallUnary(*stubs_->jobs, &v1::JobService::Stub::ListJobs, request, stubs_->relay);
}

absl::StatusOr<v1::Job> JobClient::Cancel(const std::string& job) {
  v1::CancelJobRequest request;
  request.set_job(job);
  return CallUnary(*stubs_->jobs, &v1::JobService::Stub::CancelJob, request,
                   absl::StrCat("job ", job, " at ", stubs_->relay));
}

absl::StatusOr<v1::ListAttachedResponse> JobClient::ListAttached(
    const v1::ListAttachedRequest& request) {
  return CallUnary(*stubs_->attachment, &v1::AttachService::Stub::ListAttached, request,
                   stubs_->relay);
}

absl::StatusOr<v1::Job> JobClient::Watch(
    v1::WatchJobRequest request,
    const std::function<bool(const v1::WatchJobResponse&)>& on_response,
    const WatchReminder& reminder) {
  const std::string subject = absl::StrCat("job ", request.job(), " at ", stubs_->relay);
  v1::Job job;
  absl::Time last_response = absl::Now();
  const bool reminds = reminder.remind != nullptr;
  absl::Duration remind_after = reminder.after;
  absl::Time remind_at = last_response + remind_after;
  while (true) {
    grpc::ClientContext context;
    // The deadline interrupts the stream for the reminder. The next stream resumes it.
    if (reminds) context.set_deadline(absl::ToChronoTime(remind_at));
    const InterruptHook hook([&context] { context.TryCancel(); });
    const auto stream = stubs_->jobs->WatchJob(&context, request);
    v1::WatchJobResponse response;
    bool done = false;
    while (!done && stream->Read(&response)) {
      request.set_position(response.position());
      if (response.has_job()) job = response.job();
      done = !on_response(response);
      last_response = absl::Now();  // the callback may have blocked on its output
    }
    if (done) context.TryCancel();
    const absl::Status status = AwaitCallEnd(context, [&] { return stream->Finish(); });
    if (status.ok() || done) return job;
    if (Interrupted()) return absl::CancelledError("interrupted");
    if (reminds && absl::IsDeadlineExceeded(status)) {
      remind_after *= 2;
      remind_at = absl::Now() + remind_after;
      reminder.remind();
      continue;
    }
    const bool retried = IsWatchRetried(status, absl::Now() - last_response);
    if (!retried || !SleepUnlessInterrupted(kPause)) return FromService(status, subject);
  }
}

absl::StatusOr<v1::Job> JobClient::Read(
    const v1::WatchJobRequest& request,
    const std::function<void(const v1::WatchJobResponse&)>& on_response) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kReadLimit));
  const InterruptHook hook([&context] { context.TryCancel(); });
  const auto stream = stubs_->jobs->WatchJob(&context, request);
  v1::WatchJobResponse response;
  v1::Job job;
  bool done = false;
  while (!done && stream->Read(&response)) {
    if (response.has_job()) job = response.job();
    on_response(response);
    done = response.records().empty();  // the end of the stored records
  }
  if (done) context.TryCancel();
  const absl::Status status = AwaitCallEnd(context, [&] { return stream->Finish(); });
  if (status.ok() || done) return job;
  return FromService(status, absl::StrCat("job ", request.job(), " at ", stubs_->relay));
}

}  // namespace muster::cli
