#include "services/common/base/process_identity.h"

#include <ctime>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "services/common/base/secret_file.h"

namespace muster {
namespace {

constexpr size_t kMaxFile = 4096;

}  // namespace

std::string BootId() {
  const auto text = ReadFileBounded("/proc/sys/kernel/random/boot_id", kMaxFile);
  return text.ok() ? std::string(absl::StripAsciiWhitespace(*text)) : std::string();
}

absl::Duration SinceBoot() {
  timespec since = {};
  clock_gettime(CLOCK_BOOTTIME, &since);
  return absl::DurationFromTimespec(since);
}

absl::Time BootTime() { return absl::Now() - SinceBoot(); }

std::optional<ProcessStat> ReadProcessStat(pid_t pid) {
  const auto text = ReadFileBounded(absl::StrCat("/proc/", pid, "/stat"), kMaxFile);
  if (!text.ok()) return std::nullopt;
  // The name in parentheses may contain anything; the fields follow the last parenthesis.
  const size_t end = text->rfind(')');
  if (end == std::string::npos) return std::nullopt;
  const std::vector<std::string> fields =
      absl::StrSplit(text->substr(end + 1), ' ', absl::SkipWhitespace());
  constexpr size_t kState = 0;   // field 3 of proc(5)
  constexpr size_t kGroup = 2;   // field 5
  constexpr size_t kStart = 19;  // field 22
  ProcessStat stat;
  if (fields.size() <= kStart || fields[kState] == "Z" || fields[kState] == "X" ||
      !absl::SimpleAtoi(fields[kGroup], &stat.group) ||
      !absl::SimpleAtoi(fields[kStart], &stat.start_ticks)) {
    return std::nullopt;
  }
  return stat;
}

std::optional<ProcessIdentity> IdentifyProcess(pid_t pid) {
  const auto stat = ReadProcessStat(pid);
  if (!stat) return std::nullopt;
  return ProcessIdentity{pid, stat->start_ticks, BootId()};
}

bool IsRunning(const ProcessIdentity& process) { return IdentifyProcess(process.pid) == process; }

}  // namespace muster
