#include "cli/supervisor/service.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/supervisor/log_file.h"
#include "services/common/base/clock.h"

namespace muster::supervisor {

Service::Service(ServiceSpec spec, RestartPolicy policy, EventLoop& loop)
    : spec_(std::move(spec)), policy_(policy), loop_(loop), back_off_(policy.first) {}

Service::~Service() {
  if (process_) loop_.Unwatch(process_->pidfd());
}

void Service::Start() {
  if (auto leftover = FindByPidFile(spec_.pid_file)) return Adopt(*std::move(leftover));
  Spawn();
}

void Service::Adopt(Process process) {
  Log(absl::StrCat(spec_.name, " is already running as process ", process.pid(), ": taken over"));
  process_ = std::move(process);
  adopted_ = true;
  WatchProcess();
}

void Service::Spawn() {
  if (stopping_) return;
  if (!spec_.addresses_file.empty()) ::unlink(spec_.addresses_file.c_str());
  auto process =
      Process::Spawn({.argv = spec_.argv, .log_file = spec_.log_file, .pid_file = spec_.pid_file});
  if (!process.ok()) {
    last_exit_ = std::string(process.status().message());
    Log(absl::StrCat(spec_.name, " cannot be started: ", last_exit_));
    return ScheduleRestart();
  }
  process_ = *std::move(process);
  adopted_ = false;
  Log(absl::StrCat(spec_.name, " started as process ", process_->pid()));
  WatchProcess();
}

void Service::WatchProcess() {
  started_at_ = SystemClock().MonotonicNow();
  loop_.Watch(process_->pidfd(), [this] { OnExit(); });
}

void Service::OnExit() {
  loop_.Unwatch(process_->pidfd());
  last_exit_ = process_->Reap();
  Log(absl::StrCat(spec_.name, ", process ", process_->pid(), ": ", last_exit_));
  process_.reset();
  ::unlink(spec_.pid_file.c_str());
  if (!stopping_) return ScheduleRestart();
  if (on_stopped_) std::exchange(on_stopped_, nullptr)();
}

void Service::ScheduleRestart() {
  if (IsSettled()) back_off_ = policy_.first;
  ++restarts_;
  Log(absl::StrCat(spec_.name, " restarts in ", absl::FormatDuration(back_off_)));
  loop_.After(back_off_, [this] { Spawn(); });
  back_off_ = std::min(back_off_ * 2, policy_.longest);
}

// Back-off is for services that fail at their start. A service that was serving, or ran for a long
// time, restarts immediately.
bool Service::IsSettled() const {
  const absl::Duration lived = SystemClock().MonotonicNow() - started_at_;
  if (lived >= policy_.settled) return true;
  return lived >= policy_.served && !spec_.addresses_file.empty() &&
         ::access(spec_.addresses_file.c_str(), F_OK) == 0;
}

void Service::Stop(absl::Duration drain, std::function<void()> on_stopped) {
  stopping_ = true;
  if (!process_) return on_stopped();
  on_stopped_ = std::move(on_stopped);
  Log(absl::StrCat(spec_.name, " is stopping"));
  process_->Signal(SIGTERM);
  loop_.After(drain, [this, drain] {
    if (!process_) return;
    Log(absl::StrCat(spec_.name, " did not exit within ", absl::FormatDuration(drain), ": killed"));
    process_->Signal(SIGKILL);
  });
}

nlohmann::ordered_json Service::Describe() const {
  nlohmann::ordered_json json = {{"name", spec_.name},
                                 {"state", process_    ? "running"
                                           : stopping_ ? "stopped"
                                                       : "waiting"}};
  if (process_) json["pid"] = process_->pid();
  json["adopted"] = adopted_;
  json["restarts"] = restarts_;
  json["last_exit"] = last_exit_;
  return json;
}

}  // namespace muster::supervisor
