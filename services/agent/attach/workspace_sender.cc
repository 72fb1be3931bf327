#include "services/agent/attach/workspace_sender.h"

#include <algorithm>
#include <chrono>

#include "absl/time/clock.h"
#include "muster/v1/workspaces.grpc.pb.h"
#include "services/agent/attach/stoppable_call.h"
#include "services/common/base/clock.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/error.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/relay.h"
#include "services/common/errors/workspaces.h"
#include "services/common/jobs/workspace_report.h"
#include "services/common/templates/workspaces.h"

namespace muster {
namespace {

constexpr int64_t kMaxPem = 64 * 1024;
constexpr std::chrono::seconds kAnswerWithin(60);  // the last part is hashed and synced
constexpr absl::Duration kForgetEvery = absl::Minutes(10);

absl::Duration Now() { return SystemClock().MonotonicNow(); }

}  // namespace

WorkspaceSender::WorkspaceSender(WorkspaceOutbox& outbox, Options options)
    : outbox_(outbox), options_(std::move(options)), thread_([this] { Work(); }) {}

WorkspaceSender::~WorkspaceSender() {
  stopped_ = true;
  outbox_.Wake();
  thread_.join();
}

void WorkspaceSender::Work() {
  absl::Duration forget_at;
  while (!stopped_) {
    if (Now() >= forget_at) {
      outbox_.ForgetRefused();
      forget_at = Now() + kForgetEvery;
    }
    if (!outbox_.AwaitWaiting(kForgetEvery) || stopped_) continue;
    const absl::Duration next = SendDue();
    // Another archive may be saved meanwhile: its first attempt is due immediately.
    const absl::Duration end = std::min(next, Now() + kStopPoll);
    while (!stopped_ && Now() < end) absl::SleepFor(std::min(end - Now(), kStopPoll));
  }
}

absl::Duration WorkspaceSender::SendDue() {
  absl::Duration next = absl::InfiniteDuration();
  const std::vector<std::string> waiting = outbox_.Waiting();
  std::erase_if(attempts_, [&](const auto& attempt) {
    return !std::ranges::binary_search(waiting, attempt.first);
  });
  for (const std::string& job : waiting) {
    if (stopped_) break;
    Attempt& attempt = attempts_.try_emplace(job, options_.backoff).first->second;
    if (Now() >= attempt.at) {
      const absl::Status sent = Send(job);
      if (sent.ok()) continue;
      if (!stopped_) HandleFailure(job, sent);
    }
    next = std::min(next, attempt.at);
  }
  return next;
}

void WorkspaceSender::HandleFailure(const std::string& job, const absl::Status& why) {
  Attempt& attempt = attempts_.at(job);
  attempt.at = Now() + attempt.backoff.Next(RetryAfterOf(why));
  LogLimited(LogLevel::kWarning, "a saved workspace is not sent yet; trying again", job,
             {{"job", job}, {"error", why}});
}

absl::StatusOr<v1::SaveWorkspaceResponse> WorkspaceSender::Call(
    const v1::SaveWorkspaceRequest& request) {
  const auto channel = options_.channel();
  if (channel == nullptr) return errors::RelayCutOff();
  return CallUntilStopped<v1::WorkspaceService, v1::SaveWorkspaceRequest,
                          v1::SaveWorkspaceResponse>(
      channel, &AsyncStub<v1::WorkspaceService>::SaveWorkspace, request, kAnswerWithin,
      [this] { return stopped_.load(); });
}

// A damaged archive can never be sent, and others wait for its space.
absl::Status WorkspaceSender::HandleUnreadable(const std::string& job, const absl::Status& why) {
  if (ReasonOf(why) != "WORKSPACE_NOT_SAVED" && !absl::IsDataLoss(why)) return why;
  Log(LogLevel::kError, "a saved workspace is damaged; it is not sent, and kept for a day",
      {{"job", job}, {"error", why}});
  return outbox_.Refuse(job);
}

// Each call without progress ends the attempt: a relay could answer forever.
absl::Status WorkspaceSender::Send(const std::string& job) {
  v1::SaveWorkspaceRequest request;
  auto report = outbox_.Report(job);
  if (!report.ok()) return HandleUnreadable(job, report.status());
  *request.mutable_report() = *std::move(report);
  // The certificate may be renewed between two attempts.
  ASSIGN_OR_RETURN(const SigningFiles files, ReadSigningFiles(options_.identity_folder));
  RETURN_IF_ERROR(SignWorkspaceReport(files, options_.fleet, request.mutable_report()));
  request.set_crc32c(Crc32c(request.data()));
  ASSIGN_OR_RETURN(auto answer, Call(request));
  while (!answer.saved() && answer.lost().empty()) {
    if (stopped_) return absl::CancelledError("the agent is being stopped");
    const int64_t offset = answer.offset();
    const int64_t size = request.report().workspace().size();
    if (offset < 0 || offset >= size || offset % static_cast<int64_t>(kWorkspacePart) != 0) {
      return errors::WorkspaceRefused("the offset of the answer to it is not possible");
    }
    ASSIGN_OR_RETURN(*request.mutable_data(), outbox_.ReadPart(job, offset));
    request.set_offset(offset);
    request.set_crc32c(Crc32c(request.data()));
    ASSIGN_OR_RETURN(answer, Call(request));
    const bool has_progress = answer.saved() || !answer.lost().empty() || answer.offset() > offset;
    if (!has_progress) return errors::WorkspaceRefused("a part of it was not stored");
  }
  return HandleAnswer(job, request.report(), answer);
}

absl::Status WorkspaceSender::HandleAnswer(const std::string& job,
                                           const v1::WorkspaceReport& report,
                                           const v1::SaveWorkspaceResponse& answer) {
  ASSIGN_OR_RETURN(const std::string roots,
                   ReadSmallFile(PosixFileOps(), options_.identity_folder + "/ca.pem", kMaxPem));
  ASSIGN_OR_RETURN(const std::vector<Certificate> trusted, ParseChain(roots));
  RETURN_IF_ERROR(VerifyWorkspaceAnswer(report, options_.fleet, trusted, absl::Now(), answer));
  if (answer.saved()) return outbox_.Remove(job);
  Log(LogLevel::kError, "the jobs service refuses a saved workspace; it is kept for a day",
      {{"job", job}, {"workspace", report.workspace().workspace()}, {"why", answer.lost()}});
  return outbox_.Refuse(job);
}

}  // namespace muster
