#include "services/agent/jobs/process_mark.h"

#include <signal.h>

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/strings.h"
#include "services/common/errors/jobs.h"

namespace muster {
namespace {

constexpr size_t kMaxProcFile = size_t{4} << 20;  // an environment

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
    const auto stat = ReadProcessStat(pid);
    if (stat && stat->group == group) members.push_back(pid);
  }
  return members;
}

}  // namespace

absl::StatusOr<ProcessMark> ProcessMark::Of(pid_t pid) {
  auto process = IdentifyProcess(pid);
  if (!process) return absl::NotFoundError(absl::StrCat("no process ", pid));
  return ProcessMark{*std::move(process)};
}

std::string ProcessMark::ToText() const {
  return absl::StrCat(pid, " ", start_ticks, " ", boot_id, "\n");
}

absl::StatusOr<ProcessMark> ProcessMark::FromText(std::string_view text) {
  const std::vector<std::string> parts =
      absl::StrSplit(absl::StripAsciiWhitespace(ToAbsl(text)), ' ');
  ProcessMark mark;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &mark.pid) || mark.pid <= 1 ||
      !absl::SimpleAtoi(parts[1], &mark.start_ticks)) {
    return errors::ProcessMarkDamaged();
  }
  mark.boot_id = parts[2];
  return mark;
}

int EndGroup(const ProcessMark& leader, std::string_view variable) {
  if (leader.boot_id != BootId()) return 0;
  const std::vector<pid_t> members = MembersOf(leader.pid);
  if (IsRunning(leader)) {
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
