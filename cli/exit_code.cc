#include "cli/exit_code.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"
#include "services/common/errors/cli.h"

namespace muster::cli {
namespace {

constexpr char kSubject[] = "muster/subject";
constexpr char kService[] = "muster/from-service";
constexpr char kUsage[] = "muster/usage";
constexpr char kUsageReason[] = "USAGE";

// Parses "REASON: message. Next step.": the form of refusals that cannot carry details, because a
// service refuses the caller before any handler runs. Returns other errors unchanged.
absl::Status WithParsedReason(const absl::Status& status) {
  const std::string_view text = ToStd(status.message());
  const size_t reason = text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
  if (!ReasonOf(status).empty() || reason == std::string_view::npos || reason < 3 ||
      !text.substr(reason).starts_with(": ")) {
    return status;
  }
  const std::string_view rest = text.substr(reason + 2);
  const size_t message = rest.find(". ");
  if (message == std::string_view::npos) return status;
  return MakeError(status.code(), text.substr(0, reason), rest.substr(0, message),
                   rest.substr(message + 2));
}

}  // namespace

absl::Status FromService(absl::Status status, const std::string& subject) {
  if (status.ok()) return status;
  status = WithParsedReason(status);
  if (absl::IsDeadlineExceeded(status) && ReasonOf(status).empty()) {
    status = errors::NoAnswer();
  }
  status.SetPayload(kService, absl::Cord("1"));
  status.SetPayload(kSubject, absl::Cord(subject));
  return status;
}

absl::Status UsageError(const std::string& message, const std::string& next_step) {
  return errors::Usage(message, next_step);
}

absl::Status AsUsageError(const absl::Status& status, const std::string& option) {
  if (status.ok()) return status;
  absl::Status marked = option.empty() ? status : Annotate(status, option);
  marked.SetPayload(kUsage, absl::Cord("1"));
  return marked;
}

absl::Status WithTimeoutOption(const absl::Status& status) {
  if (ReasonOf(status) != "INVALID_TIMEOUT") return status;
  const std::string_view text = ToStd(status.message());
  const size_t end = std::min(text.find(' '), text.size());
  std::string option(text.substr(0, end));
  std::ranges::replace(option, '_', '-');
  return AsUsageError(MakeError(status.code(), ReasonOf(status),
                                absl::StrCat("--", option, ToAbsl(text.substr(end))),
                                NextStepOf(status)));
}

absl::Status WithSubject(absl::Status status, const std::string& subject) {
  if (!status.ok() && !status.GetPayload(kSubject)) {
    status.SetPayload(kSubject, absl::Cord(subject));
  }
  return status;
}

std::string SubjectOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kSubject);
  return payload ? std::string(*payload) : std::string();
}

int ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return kExitOk;
  if (status.GetPayload(kService)) return kExitRpcBase + static_cast<int>(status.code());
  if (status.GetPayload(kUsage) || ReasonOf(status) == kUsageReason) return kExitUsage;
  return kExitError;
}

}  // namespace muster::cli
