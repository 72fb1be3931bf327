#include "services/common/service/service_main.h"

#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/exit_process.h"
#include "services/common/base/log.h"
#include "services/common/base/mutex.h"
#include "services/common/base/process_setup.h"
#include "services/common/base/secret_file.h"
#include "services/common/rpc/channel_driver.h"
#include "services/common/rpc/process.h"
#include "services/common/rpc/proxy.h"
#include "services/common/version.h"

namespace muster {
namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

int Complain(const std::string& program, const absl::Status& status, int code) {
  std::cerr << program << ": " << status.message() << "\n";
  if (const std::string next = NextStepOf(status); !next.empty()) std::cerr << next << "\n";
  return code;
}

absl::Status StartServiceLog(const ServiceProgram& program) {
  LogOptions options;
  options.service = program.name;
  options.format = program.log->format == "json" ? LogFormat::kJson : LogFormat::kText;
  options.level = ParseLogLevel(program.log->level).value_or(LogLevel::kInfo);
  options.file = program.log->file;
  return StartLog(options);
}

// The reason why the service cannot continue, set by any of its threads.
struct Failure {
  Mutex mutex;
  std::optional<absl::Status> status ABSL_GUARDED_BY(mutex);
};

int Serve(const ServiceProgram& program) {
  SignalWaiter signals;  // before any thread
  Failure failure;
  auto fail = [&](const absl::Status& why) {
    {
      MutexLock lock(failure.mutex);
      failure.status = why;
    }
    signals.RequestStop();
  };
  auto service = program.start(fail);
  if (!service.ok()) {
    Log(LogLevel::kError, "cannot start", {{"error", service.status()}});
    return Complain(program.name, service.status(), kFailed);
  }
  Log(LogLevel::kInfo, "serving", {{"version", kVersion}, {"pid", static_cast<int64_t>(getpid())}});
  signals.Wait();
  Log(LogLevel::kInfo, "stopping");
  (*service)->Stop();
  service->reset();
  MutexLock lock(failure.mutex);
  if (failure.status) {
    Log(LogLevel::kError, "stopped after a fatal error", {{"error", *failure.status}});
    return kFailed;
  }
  Log(LogLevel::kInfo, "stopped");
  return 0;
}

// Allows as many files as the system does: a connection that finds no free descriptor is closed
// (accept_guard.h), and the usual limit of 1,024 is few for a fleet.
void RaiseFileLimit() {
  rlimit files = {};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace

void BindLogConfig(LogConfig* log, Config* file) {
  file->OneOf("log.format", &log->format, "How log lines look.", {"text", "json"});
  file->OneOf("log.level", &log->level, "The lowest level that is logged.",
              {"debug", "info", "warning", "error"});
  file->String("log.file", &log->file, "The file of the log. Empty: stderr.");
}

int ServiceMain(int argc, char** argv, const ServiceProgram& program) {
  RequireTls13();
  const std::string proxy_fault = UseOneProxy();
  LeaveEventsToServer();
  if (const absl::Status status = SetUpProcess(); !status.ok()) {
    return Complain(program.name, status, kFailed);
  }
  RaiseFileLimit();
  CLI::App app(program.summary, program.name);
  app.set_help_flag("-h,--help", "Show this help");
  app.footer("`muster up` writes the configuration of the services and starts them.");
  std::string path;
  bool print = false;
  app.add_option("--config", path, "The configuration file (YAML)")->type_name("FILE");
  app.add_flag("--print-config", print,
               "Print the configuration with comments, as it would be used, and exit");
  app.set_version_flag("--version", std::string(kVersion), "Show the version");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  Config config(program.name);
  program.bind(&config);
  if (!path.empty()) {
    const absl::Status loaded = config.Load(path);
    if (!loaded.ok()) return Complain(program.name, loaded, kUsage);
  }
  if (print) {
    std::cout << config.Print();
    return 0;
  }
  if (path.empty()) {
    std::cerr << program.name << ": no --config FILE; --print-config shows one with defaults\n";
    return kUsage;
  }
  if (const absl::Status status = StartServiceLog(program); !status.ok()) {
    return Complain(program.name, status, kFailed);
  }
  RouteGrpcLog();
  if (!proxy_fault.empty()) Log(LogLevel::kWarning, "invalid proxy", {{"why", proxy_fault}});
  ExitProcess(Serve(program));
}

absl::Status WriteAddresses(const std::string& path,
                            const std::map<std::string, std::string>& addresses) {
  if (path.empty()) return absl::OkStatus();
  return WriteFileAtomically(path, nlohmann::json(addresses).dump(2) + "\n");
}

}  // namespace muster
