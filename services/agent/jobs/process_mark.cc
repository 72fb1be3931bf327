#include "services/agent/jobs/process_mark.h"

#include <signal.h>
#include <time.h>

#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/strings.h"
#include "services/common/errors/jobs.h"

namespace muster {
namespace {

constexpr size_t kMaxProcFile = size_t{4} << 20;  // an environment

// The state of a process in /proc.
struct ProcStat {
  pid_t group = 0;
  int64_t started = 0;
};

std::optional<ProcStat> ReadStat(pid_t pid) {
  const auto text = ReadFileBounded(absl::StrCat("/proc/", pid, "/stat"), 4096);
  if (!text.ok()) return std::nullopt;
  // The name in parentheses may contain anything; the fields follow the last parenthesis.
  const size_t end = text->rfind(')');
  if (end == std::string::npos) return std::nullopt;
  const std::vector<std::string> fields =
      absl::StrSplit(text->substr(end + 1), ' ', absl::SkipEmpty());
  // By proc(5), from field 3 on: state, parent, group (5), ..., start time (22).
  ProcStat stat;
  if (fields.size() < 20 || fields[0] == "Z" || !absl::SimpleAtoi(fields[2], &stat.group) ||
      !absl::SimpleAtoi(fields[19], &stat.started)) {
    return std::nullopt;
  }
  return stat;
}

bool HasVariable(pid_t pid, std::string_view variable) {
  const auto environment = ReadFileBounded(absl::StrCat("/proc/", pid, "/environ"), kMaxProcFile);
  if (!environment.ok()) return false;
  for (const absl::string_view entry : absl::StrSplit(*environment, '\0')) {
    if (entry == ToAbsl(variable)) return true;
  }
  return false;
}

std::vector<pid_t> MembersOf(pid_t group) {
  std::vector<pid_t> members;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid)) continue;
    const auto stat = ReadStat(pid);
    if (stat && stat->group == group) members.push_back(pid);
  }
  return members;
}

}  // namespace

std::string BootId() {
  const auto text = ReadFileBounded("/proc/sys/kernel/random/boot_id", 64);
  return text.ok() ? std::string(absl::StripAsciiWhitespace(*text)) : std::string();
}

absl::Duration SinceBoot() {
  timespec since = {};
  clock_gettime(CLOCK_BOOTTIME, &since);
  return absl::DurationFromTimespec(since);
}

absl::Time BootTime() { return absl::Now() - SinceBoot(); }

absl::StatusOr<ProcessMark> ProcessMark::Of(pid_t pid) {
  const auto stat = ReadStat(pid);
  if (!stat) return absl::NotFoundError(absl::StrCat("no process ", pid));
  return ProcessMark{pid, stat->started, BootId()};
}

std::string ProcessMark::ToText() const { return absl::StrCat(pid, " ", started, " ", boot, "\n"); }

absl::StatusOr<ProcessMark> ProcessMark::FromText(std::string_view text) {
  const std::vector<std::string> parts =
      absl::StrSplit(absl::StripAsciiWhitespace(ToAbsl(text)), ' ');
  ProcessMark mark;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &mark.pid) || mark.pid <= 1 ||
      !absl::SimpleAtoi(parts[1], &mark.started)) {
    return errors::ProcessMarkDamaged();
  }
  mark.boot = parts[2];
  return mark;
}

int EndGroup(const ProcessMark& leader, std::string_view variable) {
  if (leader.boot != BootId()) return 0;
  const std::vector<pid_t> members = MembersOf(leader.pid);
  const auto now = ReadStat(leader.pid);
  if (now && now->started == leader.started) {
    kill(-leader.pid, SIGKILL);
    return static_cast<int>(members.size());
  }
  int ended = 0;
  for (const pid_t member : members) {
    if (HasVariable(member, variable) && kill(member, SIGKILL) == 0) ++ended;
  }
  return ended;
}

}  // namespace muster
