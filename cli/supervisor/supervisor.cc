#include "cli/supervisor/supervisor.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "cli/supervisor/instance_lock.h"
#include "cli/supervisor/log_file.h"
#include "services/common/base/clock.h"
#include "services/common/base/error.h"
#include "services/common/base/names.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/text_values.h"
#include "services/common/errors/cli.h"

namespace muster::supervisor {
namespace {

constexpr absl::Duration kLogCheck = absl::Minutes(1);
constexpr absl::Duration kStartDelay = absl::Seconds(1);
constexpr absl::Duration kStartDelayCheck = absl::Milliseconds(10);
constexpr size_t kMaxName = 300;  // "legacy/" and a run id, with a margin

ControlAnswer Json(const nlohmann::ordered_json& json) {
  return {.line = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)};
}

ControlAnswer Failure(const absl::Status& status) {
  return Json({{"error", std::string(status.message())}, {"reason", ReasonOf(status)}});
}

ControlAnswer InvalidRequest(const std::string& fault) {
  return Failure(errors::InvalidSupervisorRequest(fault));
}

// Raises the descriptor limit to its maximum, for this process and its children.
void RaiseDescriptorLimit() {
  struct rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

UniqueFd CatchStopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  return UniqueFd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

}  // namespace

absl::Status Supervisor::Run() {
  ASSIGN_OR_RETURN(InstanceLock lock, InstanceLock::Acquire(options_.lock_file));
  RaiseDescriptorLimit();
  const UniqueFd signals = CatchStopSignals();
  loop_.Watch(signals.get(), [&] {
    struct signalfd_siginfo info = {};
    if (::read(signals.get(), &info, sizeof(info)) != sizeof(info)) return;
    if (info.ssi_signo != SIGHUP) BeginStop();  // a closed terminal is no reason to stop
  });
  ASSIGN_OR_RETURN(auto control,
                   ControlSocket::Open(options_.socket, loop_, [this](const std::string& line) {
                     return HandleRequest(line);
                   }));

  for (const ServiceSpec& spec : options_.services) {
    services_.push_back(std::make_unique<Service>(spec, options_.restart, loop_));
  }
  StartFrom(0);
  RotateLogs();
  loop_.Run();
  services_.clear();
  Log("stopped");
  return absl::OkStatus();
}

ControlAnswer Supervisor::HandleRequest(const std::string& line) {
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return InvalidRequest("the request is not a JSON object");
  const auto text = [&json](const char* field) -> std::optional<std::string> {
    const auto found = json.find(field);
    if (found == json.end() || !found->is_string()) return std::nullopt;
    return found->get<std::string>();
  };
  if (const auto address = text("listen")) {
    const auto name = text("name");
    if (!name || name->empty() || name->size() > kMaxName) {
      return InvalidRequest(absl::StrCat("\"name\" must have 1 to ", kMaxName, " characters"));
    }
    return Listen(*name, *address);
  }
  if (const auto name = text("release")) {
    const bool released = sockets_.Release(*name);
    if (released) Log(absl::StrCat("released ", SafeFileName(*name)));
    return Json({{"released", released}});
  }
  if (json.contains("status")) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const auto& service : services_) {
      nlohmann::ordered_json description = service->Describe();
      description["socket_open"] = sockets_.Has(service->name());
      list.push_back(std::move(description));
    }
    return Json({{"services", list}});
  }
  return InvalidRequest("the request must be one of \"listen\", \"release\", \"status\"");
}

ControlAnswer Supervisor::Listen(const std::string& name, const std::string& address) {
  const std::optional<HostPort> parsed = ParseHostPort(address);
  if (!parsed) return InvalidRequest("\"listen\" must be HOST:PORT");
  const auto socket = sockets_.Listen(name, *parsed);
  if (!socket.ok()) return Failure(socket.status());
  ControlAnswer answer = Json({{"address", socket->address.ToString()}});
  answer.fd = socket->fd;
  return answer;
}

// Starts the services from `index` on. Each service starts after the previous one has written its
// addresses, or after a delay, so that it logs no failed connections.
void Supervisor::StartFrom(size_t index) {
  if (index == services_.size() || stopping_) return;
  services_[index]->Start();
  const absl::Duration until = SystemClock().MonotonicNow() + kStartDelay;
  StartNextWhenListening(index, until);
}

void Supervisor::StartNextWhenListening(size_t index, absl::Duration until) {
  const std::string& file = options_.services[index].addresses_file;
  if (file.empty() || ::access(file.c_str(), F_OK) == 0 || SystemClock().MonotonicNow() >= until) {
    return StartFrom(index + 1);
  }
  loop_.After(kStartDelayCheck, [this, index, until] { StartNextWhenListening(index, until); });
}

void Supervisor::RotateLogs() {
  for (const auto& service : services_) RotateLogFile(service->log_file(), options_.log_limit);
  loop_.After(kLogCheck, [this] { RotateLogs(); });
}

void Supervisor::BeginStop() {
  if (std::exchange(stopping_, true)) return;
  Log("stopping");
  StopFrom(services_.size());
}

// Stops the services before `index` in reverse order, one after another.
void Supervisor::StopFrom(size_t index) {
  if (index == 0) return loop_.Stop();
  services_[index - 1]->Stop(options_.drain, [this, index] { StopFrom(index - 1); });
}

}  // namespace muster::supervisor
