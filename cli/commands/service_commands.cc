#include "cli/commands/service_commands.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/commands/keep_rules.h"
#include "cli/exit_code.h"
#include "cli/output/format.h"
#include "cli/output/json_view.h"
#include "cli/output/table.h"
#include "cli/supervisor/address_plan.h"
#include "cli/supervisor/home.h"
#include "cli/supervisor/installation.h"
#include "cli/supervisor/service_files.h"
#include "cli/supervisor/supervisor.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/text_values.h"

namespace muster::cli {
namespace {

struct UpArguments {
  std::vector<std::string> advertise;
  std::string bind;
  int port = -1;
  int aggregator_port = -1;
  int status_port = -1;
  int gateway_port = -1;
  std::string legacy_ports;
  std::optional<std::string> legacy_host;
  int legacy_port = -1;
  std::string keep;
  std::string timeout;
};

absl::StatusOr<supervisor::UpOptions> MakeOptions(const UpArguments& arguments) {
  supervisor::UpOptions options;
  supervisor::AddressOptions& addresses = options.addresses;
  addresses.advertise = arguments.advertise;
  addresses.bind = arguments.bind;
  addresses.legacy_ports = arguments.legacy_ports;
  addresses.legacy_host = arguments.legacy_host;
  if (arguments.legacy_port >= 0) addresses.legacy_port = arguments.legacy_port;
  if (arguments.port >= 0) addresses.port = arguments.port;
  const auto set = [&addresses](const char* service, int port) {
    if (port >= 0) addresses.service_port[service] = port;
  };
  set("aggregator", arguments.aggregator_port);
  set("status", arguments.status_port);
  set("gateway", arguments.gateway_port);
  if (!arguments.keep.empty()) {
    ASSIGN_OR_RETURN(const auto rules, ParseKeepRules(arguments.keep));
    options.retention = KeepRulesYaml(rules);
  }
  if (arguments.timeout.empty()) return options;
  const auto limit = DurationArgument(arguments.timeout);
  if (!limit.ok()) return AsUsageError(limit.status(), "--timeout");
  options.limit = *limit;
  return options;
}

// Returns the first name or address at which clients reach this machine.
std::string AdvertisedHost(const Home& home) {
  const auto advertised = supervisor::ConfigList(home, "aggregator", "advertise");
  return advertised.ok() && !advertised->empty() ? advertised->front() : "127.0.0.1";
}

// Returns the URL at `address`, which may be "0.0.0.0:7443".
std::string UrlAt(const std::string& address, const std::string& host) {
  auto target = ParseHostPort(address);
  if (target && (target->host == "0.0.0.0" || target->host == "::")) target->host = host;
  return absl::StrCat("https://", target ? target->ToString() : address);
}

// Returns the port that runs share for legacy clients, with the pattern of their host names;
// nothing if each run has its own port.
std::optional<std::string> SharedLegacyAddress(const Home& home) {
  const auto host = supervisor::ConfigValue(home, "aggregator", "legacy_host");
  const auto port = supervisor::ConfigValue(home, "gateway", "legacy_port");
  if (!host.ok() || !port.ok() || host->empty() || port->empty()) return std::nullopt;
  return absl::StrCat(*host, ":", *port);
}

void PrintAddresses(Console& console, const Home& home, const supervisor::Addresses& addresses,
                    bool json) {
  if (json) {
    console.out << Dump(Json(addresses));
    return;
  }
  const std::string host = AdvertisedHost(home);
  Table table({{"SERVICE"}, {"ADDRESS"}});
  struct Row {
    const char* title;
    const char* name;
    bool is_url = false;
  };
  for (const Row& row :
       {Row{"aggregator", "aggregator"}, Row{"status", "status"}, Row{"gateway", "gateway", true},
        Row{"root relay", "relay"}, Row{"jobs", "jobs"}, Row{"joining", "aggregator_join"},
        Row{"status listener, dashboard", "gateway_status_listener", true}}) {
    const auto found = addresses.find(row.name);
    if (found == addresses.end()) continue;
    table.AddRow({row.title, row.is_url ? UrlAt(found->second, host) : found->second});
  }
  if (const auto shared = SharedLegacyAddress(home)) {
    table.AddRow({"legacy clients", absl::StrCat("https://", *shared)});
  }
  console.out << table.Render(console.width);
}

absl::StatusOr<int> Up(Console& console, const CommandLine& line, const UpArguments& arguments) {
  ASSIGN_OR_RETURN(const auto options, MakeOptions(arguments));
  RETURN_IF_ERROR(AsUsageError(supervisor::CheckAddressOptions(options.addresses)));
  ASSIGN_OR_RETURN(const auto home, supervisor::HomeFromEnvironment());
  const auto addresses =
      supervisor::Up(home, options, [&](const std::string& text) { PrintMessage(console, text); });
  if (!addresses.ok()) return WithSubject(addresses.status(), absl::StrCat("home ", home.path()));
  PrintAddresses(console, home, *addresses, line.json);
  PrintMessage(console, absl::StrCat("All services are ready. State and logs: ", home.path()));
  return kExitOk;
}

absl::StatusOr<int> Down(Console& console) {
  ASSIGN_OR_RETURN(const auto home, supervisor::HomeFromEnvironment());
  const auto stopped =
      supervisor::Down(home, [&](const std::string& text) { PrintMessage(console, text); });
  if (!stopped.ok()) return WithSubject(stopped.status(), absl::StrCat("home ", home.path()));
  PrintMessage(console, *stopped ? "All services are stopped."
                                 : absl::StrCat("No services are running in ", home.path(), "."));
  return kExitOk;
}

absl::StatusOr<int> Supervise() {
  ASSIGN_OR_RETURN(const auto home, supervisor::HomeFromEnvironment());
  RETURN_IF_ERROR(supervisor::MakeHomeFolders(home));
  ASSIGN_OR_RETURN(auto options, supervisor::MakeSupervisorOptions(home));
  RETURN_IF_ERROR(supervisor::Supervisor(std::move(options)).Run());
  return kExitOk;
}

void AddUp(CommandLine& line) {
  CLI::App& command = AddCommand(
      line.app,
      {.name = "up",
       .summary = "Start the services on this machine",
       .details = "Creates missing identities and configuration files of the fleet in "
                  "$MUSTER_HOME (default: ~/.muster), starts the services, and returns when they "
                  "are ready. Omitted options keep their configured values; the options of a "
                  "start that fails are not stored. The supervisor restarts a service that exits, "
                  "until `muster down`.",
       .example = "muster up\nmuster up --advertise muster.example.com,10.0.0.5"});
  const auto arguments = std::make_shared<UpArguments>();
  command
      .add_option(
          "--advertise", arguments->advertise,
          "Names or addresses at which nodes and clients reach this machine (default: 127.0.0.1)")
      ->type_name("HOST,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      .add_option("--bind", arguments->bind,
                  "The local IP address to listen on (default: 127.0.0.1, or 0.0.0.0 with "
                  "--advertise)")
      ->type_name("ADDRESS");
  const auto add_port = [&command](const char* name, int& port, const char* help) {
    AllowRange(*command.add_option(name, port, help)->type_name("PORT"), 0, 65535);
  };
  add_port(
      "--port", arguments->port,
      "The first of the ports: aggregator, status (+1), status listener (+2), gateway (+3), "
      "joining (+4), root relay (+5), jobs (+6), legacy clients (+9, and +10 to +509), status "
      "listeners of "
      "runs (+510 to +609); 0: any free ports (default: 7440, and 8002 and 8010-8109 for status "
      "listeners)");
  add_port("--aggregator-port", arguments->aggregator_port, "The port of the aggregator");
  add_port("--status-port", arguments->status_port, "The port of the status service");
  add_port("--gateway-port", arguments->gateway_port, "The port of the gateway");
  command
      .add_option(
          "--legacy-ports", arguments->legacy_ports,
          "Ports of the runs' listeners for legacy clients; 0: any free ports (default: 7450-7949)")
      ->type_name("FIRST-LAST");
  command
      .add_option("--legacy-host", arguments->legacy_host,
                  "Give each new run a host name for legacy clients on one shared port, such as "
                  "{run}.collect.example.org; \"\": a separate port for each run")
      ->type_name("PATTERN");
  add_port("--legacy-port", arguments->legacy_port,
           "The shared port; 0: any free port (default: 7449)");
  command
      .add_option("--keep", arguments->keep,
                  "Delete runs that ended longer ago than age, and those that ended first beyond a "
                  "number of runs or bytes, such as age=30d,runs=1000,bytes=500G; all: delete none "
                  "(default: all). `muster retention --keep` shows what rules would delete")
      ->type_name("RULES");
  command
      .add_option("--timeout", arguments->timeout,
                  "The limit for the services to become ready (default: 60s)")
      ->type_name("DURATION");
  AddJsonOption(line, command);
  SetAction(line, command,
            [&line, arguments](Console& console) { return Up(console, line, *arguments); });
}

}  // namespace

void AddServiceCommands(CommandLine& line) {
  AddUp(line);
  CLI::App& down = AddCommand(
      line.app, {.name = "down",
                 .summary = "Stop the services on this machine",
                 .details = "Uploads in progress are resumed after the next `muster up`.",
                 .example = "muster down"});
  SetAction(line, down, [](Console& console) { return Down(console); });
  CLI::App& supervise =
      AddCommand(line.app, {.name = "supervise",
                            .summary = "Keep the services running (what `muster up` starts)",
                            .example = "muster supervise"});
  supervise.group("");
  SetAction(line, supervise, [](Console&) { return Supervise(); });
}

}  // namespace muster::cli
