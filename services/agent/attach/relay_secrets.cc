#include "services/agent/attach/relay_secrets.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "muster/v1/secrets.grpc.pb.h"
#include "services/agent/attach/stoppable_call.h"
#include "services/common/base/backoff.h"
#include "services/common/base/clock.h"
#include "services/common/base/error.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/relay.h"
#include "services/common/errors/templates.h"
#include "services/common/identity/certificate.h"
#include "services/common/jobs/secrets_exchange.h"

namespace muster {
namespace {

constexpr int64_t kMaxPem = 64 * 1024;
constexpr std::chrono::seconds kCallLimit{15};
constexpr BackoffOptions kRetry = {absl::Milliseconds(200), absl::Seconds(5)};
// An answer that does not arrive until then may still be sent again (kMaxSecretReads).
constexpr int kMaxTries = 9;

absl::StatusOr<v1::FetchSecretsResponse> CallRelay(const std::shared_ptr<grpc::Channel>& channel,
                                                   const v1::FetchSecretsRequest& request,
                                                   const std::function<bool()>& stopped) {
  auto response =
      CallUntilStopped<v1::SecretService, v1::FetchSecretsRequest, v1::FetchSecretsResponse>(
          channel, &AsyncStub<v1::SecretService>::FetchSecrets, request, kCallLimit, stopped);
  if (!response.ok() && stopped()) return errors::SecretUnavailable("the job was stopped");
  return response;
}

// The relay may not know yet that this node is attached to it, after a restart or a move.
bool IsOfAttachment(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  return reason == "NOT_ATTACHED" || reason == "IDENTITY_NOT_FORWARDABLE";
}

bool IsWorthRepeating(const absl::Status& status) {
  return ReasonOf(status) != "SECRET_UNAVAILABLE" &&
         (IsOfAttachment(status) || absl::IsUnavailable(status) ||
          absl::IsDeadlineExceeded(status) || absl::IsResourceExhausted(status));
}

// Waits, and returns false if it was stopped.
bool Pause(absl::Duration time, const std::function<bool()>& stopped) {
  const absl::Duration end = SystemClock().MonotonicNow() + time;
  while (!stopped()) {
    const absl::Duration left = end - SystemClock().MonotonicNow();
    if (left <= absl::ZeroDuration()) return true;
    absl::SleepFor(std::min(left, kStopPoll));
  }
  return false;
}

}  // namespace

void RelaySecrets::SetChannel(GetChannel channel) {
  MutexLock lock(mutex_);
  channel_ = std::move(channel);
}

absl::StatusOr<v1::SecretValues> RelaySecrets::Fetch(const std::string& job,
                                                     const std::function<bool()>& stopped) {
  const absl::Duration end = SystemClock().MonotonicNow() + options_.patience;
  Backoff backoff(kRetry);
  for (int calls = 1;;) {
    auto values = Try(job, stopped);
    const absl::Status& status = values.status();
    if (status.ok() || ReasonOf(status) == "SECRET_UNAVAILABLE") return values;
    // Then the jobs service has sent nothing.
    const std::string reason = ReasonOf(status);
    const bool is_unsent = IsOfAttachment(status) || reason == "RELAY_CUT_OFF" ||
                           reason == "JOBS_UNREACHABLE" || reason == "OVERLOADED" ||
                           reason.starts_with("VAULT_");
    const absl::Duration pause = backoff.Next(RetryAfterOf(status));
    const bool is_late = SystemClock().MonotonicNow() + pause > end;
    if (!IsWorthRepeating(status) || is_late || calls >= kMaxTries || !Pause(pause, stopped)) {
      return errors::SecretUnavailable(
          absl::StrCat(reason, reason.empty() ? "" : ": ", status.message()));
    }
    if (!is_unsent) ++calls;
    LogLimited(LogLevel::kWarning, "the secrets of a job have not arrived; asking again", job,
               {{"job", job}, {"error", status}});
  }
}

absl::StatusOr<v1::SecretValues> RelaySecrets::Try(const std::string& job,
                                                   const std::function<bool()>& stopped) {
  std::shared_ptr<grpc::Channel> channel;
  {
    MutexLock lock(mutex_);
    if (!channel_) return errors::SecretUnavailable("the agent is being stopped");
    channel = channel_();
  }
  if (channel == nullptr) return errors::RelayCutOff();
  ASSIGN_OR_RETURN(const SigningFiles files, ReadSigningFiles(options_.identity_folder));
  ASSIGN_OR_RETURN(const std::string roots,
                   ReadSmallFile(PosixFileOps(), options_.identity_folder + "/ca.pem", kMaxPem));
  ASSIGN_OR_RETURN(const std::vector<Certificate> trusted, ParseChain(roots));
  ASSIGN_OR_RETURN(const SecretsRequest request,
                   MakeSecretsRequest(files, options_.fleet, job, options_.node));
  ASSIGN_OR_RETURN(const auto response, CallRelay(channel, request.message, stopped));
  return OpenSecrets(request, options_.fleet, trusted, absl::Now(), response);
}

}  // namespace muster
