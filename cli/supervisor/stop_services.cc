#include "cli/supervisor/stop_services.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/supervisor/home.h"
#include "cli/supervisor/instance_lock.h"
#include "cli/supervisor/service_files.h"
#include "services/common/base/strings.h"

namespace muster::supervisor {
namespace {

constexpr absl::Duration kStopMargin = absl::Seconds(10);

// Stops the services that a killed supervisor left running, in reverse order of their start.
bool StopLeftoverServices(const Home& home, absl::Duration grace,
                          const ReportProgress& report_line) {
  bool found = false;
  for (auto service = kServices.rbegin(); service != kServices.rend(); ++service) {
    const std::string pid_file = PidFile(home, *service);
    if (const auto process = FindByPidFile(pid_file)) {
      found = true;
      report_line(absl::StrCat("Stopping ", ToAbsl(*service), " (process ", process->pid(),
                               "), which is running without a supervisor."));
      StopProcess(*process, grace);
    }
    ::unlink(pid_file.c_str());
  }
  return found;
}

// Reports what a stop of the supervisor waits for.
void ReportWait(const Home& home, const Process& supervisor, absl::Duration drain,
                absl::Duration grace, const ReportProgress& report_line) {
  std::vector<std::string> running;
  for (const std::string_view service : kServices) {
    const auto process = FindByPidFile(PidFile(home, service));
    if (!process) continue;
    running.push_back(absl::StrCat(ToAbsl(service), " (process ", process->pid(), ")"));
  }
  report_line(absl::StrCat(
      "Waiting for the supervisor (process ", supervisor.pid(), ") to stop ",
      running.empty() ? "itself" : absl::StrJoin(running, ", "), ". A service is killed after ",
      absl::FormatDuration(drain), ", and the supervisor after ", absl::FormatDuration(grace),
      ". To stop earlier: kill -KILL PROCESS. Its log: ", LogFile(home, "supervisor")));
}

}  // namespace

std::optional<Process> RunningSupervisor(const Home& home) {
  const std::optional<pid_t> holder = InstanceLock::Holder(SupervisorLock(home));
  const auto identity = holder ? IdentifyProcess(*holder) : std::nullopt;
  return identity ? Process::Find(*identity) : std::nullopt;
}

bool AnyServiceRuns(const Home& home) {
  return std::ranges::any_of(kServices, [&](std::string_view service) {
    return FindByPidFile(PidFile(home, service)).has_value();
  });
}

bool StopServices(const Home& home, absl::Duration drain, const ReportProgress& report_line) {
  std::optional<Process> supervisor = RunningSupervisor(home);
  // It may have been started just now, and not have the lock yet.
  if (!supervisor) supervisor = FindByPidFile(PidFile(home, "supervisor"));
  if (supervisor) {
    const absl::Duration grace = drain * kServices.size() + kStopMargin;
    StopProcess(*supervisor, grace,
                [&] { ReportWait(home, *supervisor, drain, grace, report_line); });
  }
  const bool left = StopLeftoverServices(home, drain, report_line);
  ::unlink(PidFile(home, "supervisor").c_str());
  ::unlink(AllAddressesFile(home).c_str());
  return supervisor.has_value() || left;
}

}  // namespace muster::supervisor
