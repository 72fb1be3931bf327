#include "services/common/base/error.h"

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/strings.h"

namespace muster {
namespace {

constexpr char kReason[] = "muster/reason";
constexpr char kNextStep[] = "muster/next-step";
constexpr char kRetryAfter[] = "muster/retry-after";
constexpr char kNewestAttempt[] = "muster/newest-attempt";

std::string Payload(const absl::Status& status, const char* key) {
  auto payload = status.GetPayload(key);
  return payload ? std::string(*payload) : std::string();
}

}  // namespace

absl::Status MakeError(absl::StatusCode code, std::string_view reason, std::string_view message,
                       std::string_view next_step) {
  absl::Status status(code, ToAbsl(message));
  status.SetPayload(kReason, absl::Cord(ToAbsl(reason)));
  if (!next_step.empty()) status.SetPayload(kNextStep, absl::Cord(ToAbsl(next_step)));
  return status;
}

std::string ReasonOf(const absl::Status& status) { return Payload(status, kReason); }

std::string NextStepOf(const absl::Status& status) { return Payload(status, kNextStep); }

absl::Status WithRetryAfter(absl::Status status, absl::Duration delay) {
  if (!status.ok()) {
    status.SetPayload(kRetryAfter, absl::Cord(absl::StrCat(absl::ToInt64Milliseconds(delay))));
  }
  return status;
}

std::optional<absl::Duration> RetryAfterOf(const absl::Status& status) {
  const std::string text = Payload(status, kRetryAfter);
  if (text.empty()) return std::nullopt;
  return absl::Milliseconds(std::strtoll(text.c_str(), nullptr, 10));
}

absl::Status WithNewestAttempt(absl::Status status, int64_t attempt) {
  if (!status.ok()) status.SetPayload(kNewestAttempt, absl::Cord(absl::StrCat(attempt)));
  return status;
}

std::optional<int64_t> NewestAttemptOf(const absl::Status& status) {
  int64_t attempt = 0;
  if (!absl::SimpleAtoi(Payload(status, kNewestAttempt), &attempt)) return std::nullopt;
  return attempt;
}

absl::Status Annotate(const absl::Status& status, std::string_view context) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(), absl::StrCat(ToAbsl(context), ": ", status.message()));
  status.ForEachPayload(
      [&](absl::string_view key, const absl::Cord& value) { annotated.SetPayload(key, value); });
  return annotated;
}

}  // namespace muster
