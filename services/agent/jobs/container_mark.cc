#include "services/agent/jobs/container_mark.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "services/common/base/process_identity.h"
#include "services/common/base/strings.h"
#include "services/common/errors/jobs.h"

namespace muster {

absl::Duration ContainerMark::Elapsed() const {
  // With another boot only the wall clock relates both times.
  const absl::Duration elapsed = boot == BootId() ? SinceBoot() - since_boot : absl::Now() - start;
  return std::max(elapsed, absl::ZeroDuration());
}

std::string ContainerMark::ToText() const {
  return absl::StrCat(boot, " ", absl::ToUnixNanos(start), " ",
                      absl::ToInt64Nanoseconds(since_boot), " ",
                      absl::ToInt64Nanoseconds(plan.time_limit), " ", plan.max_output, " ",
                      plan.keep_output ? 1 : 0, " ", plan.container.memory, " ", plan.image);
}

absl::StatusOr<ContainerMark> ContainerMark::FromText(std::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(ToAbsl(text), ' ');
  ContainerMark mark;
  int64_t start = 0;
  int64_t since_boot = 0;
  int64_t limit = 0;
  int keep = 0;
  if (parts.size() != 8 || !absl::SimpleAtoi(parts[1], &start) ||
      !absl::SimpleAtoi(parts[2], &since_boot) || !absl::SimpleAtoi(parts[3], &limit) ||
      !absl::SimpleAtoi(parts[4], &mark.plan.max_output) || !absl::SimpleAtoi(parts[5], &keep) ||
      !absl::SimpleAtoi(parts[6], &mark.plan.container.memory) || parts[7].empty()) {
    return errors::ContainerMarkDamaged();
  }
  mark.boot = parts[0];
  mark.start = absl::FromUnixNanos(start);
  mark.since_boot = absl::Nanoseconds(since_boot);
  mark.plan.time_limit = absl::Nanoseconds(limit);
  mark.plan.keep_output = keep != 0;
  mark.plan.image = parts[7];
  return mark;
}

}  // namespace muster
