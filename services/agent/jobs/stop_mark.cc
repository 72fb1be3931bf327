#include "services/agent/jobs/stop_mark.h"

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "services/common/base/strings.h"
#include "services/common/errors/jobs.h"

namespace muster {
namespace {

constexpr std::array<std::pair<JobStop, std::string_view>, 3> kNames = {
    {{JobStop::kCancelled, "cancelled"},
     {JobStop::kTimedOut, "timed-out"},
     {JobStop::kStateTooLarge, "state-too-large"}}};

}  // namespace

std::string StopMark::ToText() const {
  std::string_view name;
  for (const auto& [stop, text] : kNames) {
    if (stop == why) name = text;
  }
  return absl::StrCat(ToAbsl(name), " ", absl::ToUnixNanos(time), " ", detail);
}

absl::StatusOr<StopMark> StopMark::FromText(std::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(ToAbsl(text), absl::MaxSplits(' ', 2));
  StopMark mark;
  int64_t nanos = 0;
  for (const auto& [stop, name] : kNames) {
    if (parts[0] == name) mark.why = stop;
  }
  if (mark.why == JobStop::kNone || parts.size() != 3 || !absl::SimpleAtoi(parts[1], &nanos)) {
    return errors::ContainerMarkDamaged();
  }
  mark.time = absl::FromUnixNanos(nanos);
  mark.detail = parts[2];
  return mark;
}

}  // namespace muster
