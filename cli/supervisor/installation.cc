#include "cli/supervisor/installation.h"

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "cli/supervisor/config_backup.h"
#include "cli/supervisor/control_socket.h"
#include "cli/supervisor/home.h"
#include "cli/supervisor/instance_lock.h"
#include "cli/supervisor/listening_sockets.h"
#include "cli/supervisor/log_file.h"
#include "cli/supervisor/process.h"
#include "cli/supervisor/service_files.h"
#include "cli/supervisor/service_state.h"
#include "cli/supervisor/stop_services.h"
#include "services/common/base/clock.h"
#include "services/common/base/config.h"
#include "services/common/base/disk_reserve.h"
#include "services/common/base/errno_error.h"
#include "services/common/base/error.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/cli.h"
#include "services/common/identity/bootstrap.h"

namespace muster::supervisor {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(50);
constexpr absl::Duration kCallLimit = absl::Seconds(5);
constexpr int kHopelessRestarts = 3;
constexpr int kLogLines = 12;

ServiceRole RoleOf(std::string_view service) {
  return service == "aggregator" ? ServiceRole::kAggregator
         : service == "status"   ? ServiceRole::kStatus
         : service == "relay"    ? ServiceRole::kRelay
         : service == "jobs"     ? ServiceRole::kJobs
                                 : ServiceRole::kGateway;
}

std::string SupervisorConfigFile(const Home& home) { return ConfigFile(home, "supervisor"); }

void BindSupervisorConfig(Config& config, SupervisorOptions& options, uint64_t& log_limit) {
  config.Duration("drain", &options.drain,
                  "The time in which each service must exit before it is killed.", absl::Seconds(1),
                  absl::Hours(1));
  config.Duration("longest_pause", &options.restart.longest,
                  "The maximum pause before a restart of a service that exits repeatedly.",
                  absl::Seconds(1), absl::Hours(1));
  config.ByteSize("log_limit", &log_limit,
                  "A larger log file of a service is moved to NAME.log.1, which is replaced.",
                  uint64_t{1} << 16, uint64_t{1} << 40);
}

// Returns the values other than addresses; they are set only in a new file.
ConfigValues FixedValues(const Home& home, std::string_view service) {
  ConfigValues values = {{"addresses_file", YamlText(AddressesFile(home, service))}};
  values["state_folder"] = YamlText(home.ServiceFolder(RoleOf(service)));
  if (service == "gateway") values["supervisor_socket"] = YamlText(SupervisorSocket(home));
  return values;
}

std::string ToSentence(std::string line) {
  if (!line.empty()) line.front() = absl::ascii_toupper(line.front());
  return line + ".";
}

absl::Status MakeIdentities(const Home& home, const AddressPlan& plan,
                            const ReportProgress& report_line) {
  const auto local = [&plan](std::string_view service) {
    return LocalTarget(plan.listen.find(service)->second);
  };
  BootstrapOptions options;
  options.hosts = plan.advertise;
  options.aggregator_targets = {local("aggregator")};
  options.status_targets = {local("status")};
  options.relay_targets = {local("relay")};
  options.jobs_targets = {local("jobs")};
  options.gateway_urls = {absl::StrCat("https://", local("gateway"))};
  ASSIGN_OR_RETURN(const BootstrapReport report, Bootstrap(home, options, absl::Now()));
  for (const std::string& line : report.done) report_line(ToSentence(line));
  return absl::OkStatus();
}

// Returns SERVICES_RUNNING if the plan differs from the configuration files: a service that
// restarts would use the new addresses while the others use the old ones.
absl::Status CheckUnchanged(const Home& home, const AddressPlan& plan) {
  for (const std::string_view service : kServices) {
    ASSIGN_OR_RETURN(const bool has_values,
                     HasConfigValues(home, service, AddressValues(plan, service)));
    if (!has_values) return errors::AddressesInUse();
  }
  return absl::OkStatus();
}

// Writes the rules of retention, which the aggregator reads when it starts.
absl::Status WriteRetention(const Home& home, const std::string& retention, bool running) {
  if (retention.empty()) return absl::OkStatus();
  const ConfigValues values = {{"retention", retention}};
  ASSIGN_OR_RETURN(const bool has_values, HasConfigValues(home, "aggregator", values));
  if (has_values) return absl::OkStatus();
  if (running) return errors::RetentionInUse();
  return WriteConfig(home, "aggregator", {}, values);
}

// Warns if a service gets another port than before.
absl::Status WarnOfNewPorts(const Home& home, const AddressPlan& plan,
                            const ReportProgress& report_line) {
  for (const std::string_view service : kServices) {
    ASSIGN_OR_RETURN(const auto before, ListenAddress(home, service));
    if (!before || before->port == plan.listen.find(service)->second.port) continue;
    report_line(
        "Warning: the ports change. Joined nodes and relays, contexts of other operators and "
        "credentials files\nkeep the old ports and do not reach the services there.");
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status WriteConfigs(const Home& home, const AddressPlan& plan, bool requested) {
  for (const std::string_view service : kServices) {
    const ConfigValues addresses = AddressValues(plan, service);
    ConfigValues defaults = FixedValues(home, service);
    defaults.insert(addresses.begin(), addresses.end());
    RETURN_IF_ERROR(WriteConfig(home, service, defaults, requested ? addresses : ConfigValues()));
  }
  if (::access(SupervisorConfigFile(home).c_str(), F_OK) == 0) return absl::OkStatus();
  SupervisorOptions options;
  uint64_t log_limit = static_cast<uint64_t>(options.log_limit);
  Config config("the supervisor (muster up)");
  BindSupervisorConfig(config, options, log_limit);
  return WriteFileAtomically(SupervisorConfigFile(home), config.Print());
}

absl::Status StartSupervisor(const Home& home) {
  std::error_code fault;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", fault).string();
  if (fault) return ErrnoError(fault.value(), "read", "/proc/self/exe");
  ::setenv("MUSTER_HOME", home.path().c_str(), 1);  // the services inherit it
  return Process::Spawn({.argv = {self, "supervise"},
                         .log_file = LogFile(home, "supervisor"),
                         .pid_file = PidFile(home, "supervisor")})
      .status();
}

nlohmann::json GetServices(const Home& home) {
  const auto answer = CallSupervisor(SupervisorSocket(home), R"({"status":true})", kCallLimit);
  auto json = answer.ok() ? nlohmann::json::parse(*answer, nullptr, false) : nlohmann::json();
  return json.is_object() ? json.value("services", nlohmann::json::array())
                          : nlohmann::json::array();
}

absl::Status ServiceFailedError(const Home& home, const std::string& service,
                                const std::string& cause) {
  return errors::ServiceFailed(service, cause, LogFile(home, service));
}

// Returns LISTEN_FAILED if the address of a service that does not run cannot be used, else OK.
absl::Status CheckListenAddress(const Home& home, const std::string& service) {
  const auto address = ListenAddress(home, service);
  if (!address.ok() || !*address) return absl::OkStatus();
  const absl::Status fault = ListeningSockets().Listen(service, **address).status();
  if (fault.ok()) return fault;
  const bool used = ReasonOf(fault) == "ADDRESS_IN_USE";
  const std::string text = (*address)->ToString();
  const absl::string_view why =
      absl::StripPrefix(fault.message(), absl::StrCat("listen on ", text, ": "));
  return errors::ServiceCannotListen(service, text, used ? "Address already in use" : ToStd(why));
}

// Returns why a service that fails repeatedly does not run; UNAVAILABLE if it may run meanwhile.
absl::Status CauseOfFailure(const Home& home, const nlohmann::json& service) {
  const std::string name = service.value("name", "");
  // A socket that the supervisor keeps open for the service uses the address itself.
  if (!service.value("socket_open", false)) {
    const absl::Status fault = CheckListenAddress(home, name);
    // Since the report the service may have used its address itself.
    if (!fault.ok() && RanSince(service, GetServices(home))) {
      return absl::UnavailableError("the service is still starting");
    }
    RETURN_IF_ERROR(fault);
  }
  return ServiceFailedError(home, name, service.value("last_exit", ""));
}

// Returns OK if the service is ready, UNAVAILABLE if it may become ready later.
absl::Status CheckService(const Home& home, const nlohmann::json& service) {
  const std::string name = service.value("name", "");
  if (!IsRunning(service)) {
    if (service.value("restarts", 0) >= kHopelessRestarts) return CauseOfFailure(home, service);
    return absl::UnavailableError(
        absl::StrCat("the service is not running: ", service.value("last_exit", "")));
  }
  const auto addresses = ReadAddresses(home, name);
  const auto inspection = addresses.find("inspection");
  if (inspection == addresses.end()) return absl::UnavailableError("the service is still starting");
  return CheckReady(inspection->second);
}

// The sizes of the logs before a start, by service.
using LogSizes = std::map<std::string, int64_t>;

LogSizes MeasureLogs(const Home& home) {
  LogSizes sizes = {{"supervisor", LogSize(LogFile(home, "supervisor"))}};
  for (const std::string_view service : kServices) {
    sizes.emplace(std::string(service), LogSize(LogFile(home, service)));
  }
  return sizes;
}

void ReportLog(const std::string& log, int64_t skip, const ReportProgress& report_line) {
  const std::string lines = LogTail(log, kLogLines, skip);
  if (lines.empty()) return report_line(absl::StrCat("Nothing was written to ", log, "."));
  report_line(absl::StrCat("The last lines of ", log, ":"));
  report_line(lines);
}

// On failure, reports the lines that the service logged after `before`.
absl::Status WaitUntilReady(const Home& home, absl::Duration limit, LogSizes before,
                            const ReportProgress& report_line) {
  const absl::Duration until = SystemClock().MonotonicNow() + limit;
  while (true) {
    const nlohmann::json services = GetServices(home);
    absl::Status state = services.size() == kServices.size()
                             ? absl::OkStatus()
                             : absl::UnavailableError("the service is still starting");
    std::string waiting = "supervisor";
    for (const nlohmann::json& service : services) {
      if (!state.ok()) break;
      waiting = service.value("name", "");
      state = CheckService(home, service);
    }
    if (state.ok()) return state;
    if (absl::IsUnavailable(state) && SystemClock().MonotonicNow() < until) {
      absl::SleepFor(kPoll);
      continue;
    }
    ReportLog(LogFile(home, waiting), before[waiting], report_line);
    return absl::IsUnavailable(state)
               ? ServiceFailedError(home, waiting, std::string(state.message()))
               : state;
  }
}

absl::StatusOr<Addresses> CollectAddresses(const Home& home) {
  Addresses all;
  for (const std::string_view service : kServices) {
    for (const auto& [name, address] : ReadAddresses(home, service)) {
      all[AddressName(service, name)] = address;
    }
  }
  RETURN_IF_ERROR(WriteFileAtomically(AllAddressesFile(home), nlohmann::json(all).dump(2) + "\n"));
  return all;
}

// Waits for other calls of `up` and `down` in this home, and locks it.
absl::StatusOr<InstanceLock> LockHome(const Home& home, absl::Duration limit) {
  const absl::Duration until = SystemClock().MonotonicNow() + limit;
  while (true) {
    absl::StatusOr<InstanceLock> lock = InstanceLock::Acquire(UpLock(home));
    if (lock.ok() || ReasonOf(lock.status()) != "ALREADY_RUNNING") return lock;
    if (SystemClock().MonotonicNow() >= until) {
      return errors::HomeBusy(home.path());
    }
    absl::SleepFor(kPoll);
  }
}

bool Stop(const Home& home, const ReportProgress& report_line) {
  const auto options = MakeSupervisorOptions(home);
  return StopServices(home, options.ok() ? options->drain : SupervisorOptions().drain, report_line);
}

bool HasStoredOptions(const UpOptions& options) {
  return !options.addresses.empty() || !options.retention.empty();
}

// Configures and starts the services, unless the supervisor is `running`, and waits until they are
// ready. `in_use`: services are running, and have read their configuration. Stops those that it
// started if one of them does not become ready.
absl::Status Start(const Home& home, const UpOptions& options, const AddressPlan& plan,
                   const std::optional<Process>& running, bool in_use,
                   const ReportProgress& report_line) {
  RETURN_IF_ERROR(WriteConfigs(home, plan, !options.addresses.empty()));
  RETURN_IF_ERROR(WriteRetention(home, options.retention, in_use));
  LogSizes logs;  // empty: the lines of a running service are of its present start
  if (running) {
    report_line(absl::StrCat("The services are already running; the supervisor is process ",
                             running->pid(), "."));
  } else {
    logs = MeasureLogs(home);
    RETURN_IF_ERROR(StartSupervisor(home));
  }
  const absl::Status ready = WaitUntilReady(home, options.limit, std::move(logs), report_line);
  if (!ready.ok() && !running) Stop(home, report_line);
  return ready;
}

}  // namespace

absl::StatusOr<Addresses> Up(const Home& home, const UpOptions& options,
                             const ReportProgress& report_line) {
  if (PosixFileOps().Stat(UnfinishedRestore(home)).ok()) {
    return errors::RestoreUnfinished(home.path());
  }
  ReleaseReserveIfFull(PosixFileOps(), absl::StrCat(home.ServiceFolder(ServiceRole::kAggregator),
                                                    "/", kDiskReserveFile));
  RETURN_IF_ERROR(CheckSocketPath(SupervisorSocket(home)));
  RETURN_IF_ERROR(MakeHomeFolders(home));
  ASSIGN_OR_RETURN(const auto lock, LockHome(home, options.limit));
  const std::optional<Process> running = RunningSupervisor(home);
  // A new supervisor takes over the services of one that was killed, with their addresses.
  const bool in_use = running || AnyServiceRuns(home);
  ASSIGN_OR_RETURN(const auto plan, PlanAddresses(home, options.addresses, in_use));
  if (!options.addresses.empty()) {
    RETURN_IF_ERROR(in_use ? CheckUnchanged(home, plan) : WarnOfNewPorts(home, plan, report_line));
  }
  RETURN_IF_ERROR(MakeIdentities(home, plan, report_line));
  ASSIGN_OR_RETURN(const ConfigBackup before, ConfigBackup::Read(home));
  const absl::Status started = Start(home, options, plan, running, in_use, report_line);
  if (started.ok()) return CollectAddresses(home);
  if (!running && HasStoredOptions(options)) {
    RETURN_IF_ERROR(before.Restore());
    report_line("The options of this command were not stored.");
  }
  return started;
}

absl::StatusOr<bool> Down(const Home& home, const ReportProgress& report_line) {
  const absl::Status called = PosixFileOps().Stat(UpLock(home)).status();
  if (absl::IsNotFound(called)) return false;  // `up` was never called
  RETURN_IF_ERROR(called);
  ASSIGN_OR_RETURN(const auto lock, LockHome(home, absl::Minutes(1)));
  return Stop(home, report_line);
}

absl::StatusOr<SupervisorOptions> MakeSupervisorOptions(const Home& home) {
  SupervisorOptions options;
  uint64_t log_limit = static_cast<uint64_t>(options.log_limit);
  Config config("the supervisor (muster up)");
  BindSupervisorConfig(config, options, log_limit);
  RETURN_IF_ERROR(config.Load(SupervisorConfigFile(home)));
  options.log_limit = static_cast<int64_t>(log_limit);
  options.lock_file = SupervisorLock(home);
  options.socket = SupervisorSocket(home);
  for (const std::string_view service : kServices) {
    ASSIGN_OR_RETURN(const std::string program, ServiceProgram(service));
    options.services.push_back({.name = std::string(service),
                                .argv = {program, "--config", ConfigFile(home, service)},
                                .log_file = LogFile(home, service),
                                .pid_file = PidFile(home, service),
                                .addresses_file = AddressesFile(home, service)});
  }
  return options;
}

}  // namespace muster::supervisor
