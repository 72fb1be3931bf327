#include "services/client/client_status.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "services/common/base/error.h"

namespace muster::client {
namespace {

struct Row {
  std::string_view reason;
  Code code;
};

constexpr Row kByReason[] = {
    {"INTERRUPTED", Code::kInterrupted},   {"NOT_COMMITTED_IN_TIME", Code::kDeadline},
    {"INVALID_CONFIG", Code::kBadConfig},  {"RESULT_CONFLICT", Code::kConflict},
    {"RUN_SEALED", Code::kRunEnded},       {"RUN_CANCELLED", Code::kRunEnded},
    {"RESULT_SPOOLED", Code::kHandedOver}, {"RUN_ENDED", Code::kRunEnded},
    {"RUN_NOT_FOUND", Code::kRunEnded},
};

constexpr std::string_view kSourceFaults[] = {"SOURCE_CHANGED", "SOURCE_UNREADABLE",
                                              "RESULT_TOO_LARGE", "STREAM_FAILED"};

Code CodeOf(const absl::Status& status, std::string_view reason) {
  if (status.ok()) return Code::kOk;
  const auto* row = std::ranges::find(kByReason, reason, &Row::reason);
  if (row != std::end(kByReason)) return row->code;
  switch (status.code()) {
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return Code::kRefused;
    default:
      return Code::kFailed;
  }
}

}  // namespace

Status ToClientStatus(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  return {CodeOf(status, reason), reason, std::string(status.message()), NextStepOf(status)};
}

bool IsFaultOfSource(const absl::Status& status) {
  return std::ranges::find(kSourceFaults, ReasonOf(status)) != std::end(kSourceFaults);
}

}  // namespace muster::client
