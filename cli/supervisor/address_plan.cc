#include "cli/supervisor/address_plan.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/base/unique_fd.h"
#include "services/common/errors/cli.h"
#include "services/common/identity/certificate_builder.h"
#include "services/common/identity/run_host.h"

namespace muster::supervisor {
namespace {

constexpr int kDefaultPort = 7440;
constexpr int kLegacyPortOffset = 9;
constexpr int kLegacyOffset = 10;
constexpr int kLegacyCount = 500;
constexpr char kDefaultStatusPorts[] = "8010-8109";
constexpr int kStatusPortsOffset = 510;
constexpr int kStatusPortsCount = 100;
constexpr int kMaxPort = 65535;

int PortOffset(std::string_view service) {
  return service == "aggregator" ? 0
         : service == "status"   ? 1
         : service == "relay"    ? 5
         : service == "jobs"     ? 6
                                 : 3;
}

bool IsLoopback(const std::string& host) {
  return host == "localhost" || host == "::1" || absl::StartsWith(host, "127.");
}

// The state of a port that is to be reserved.
enum class PortUse {
  kNew,         // to this fleet
  kConfigured,  // closed connections of its service may keep it for a minute (TIME_WAIT)
};

// Sockets that reserve a port. SO_REUSEADDR would let several fleets share one, so that a name
// excludes the others.
struct Reservation {
  UniqueFd name;
  UniqueFd port;
};

// Binds a Unix socket to an abstract name, which exists once in a network namespace, as the port.
bool Bind(const UniqueFd& fd, const std::string& name) {
  struct sockaddr_un address = {};
  address.sun_family = AF_UNIX;  // the first byte of an abstract name is 0
  name.copy(address.sun_path + 1, sizeof(address.sun_path) - 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return ::bind(fd.get(), reinterpret_cast<struct sockaddr*>(&address), length) == 0;
}

bool Bind(const UniqueFd& fd, int port) {
  struct sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  return ::bind(fd.get(), reinterpret_cast<struct sockaddr*>(&address), sizeof(address)) == 0;
}

// Reserves a port. Returns 0, or an error number: EADDRINUSE if another program uses or reserves
// the port.
int ReservePort(int port, PortUse use, Reservation& reservation) {
  reservation.name = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!Bind(reservation.name, absl::StrCat("muster-port-", port))) return errno;
  reservation.port = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto allow_reuse = [&] {
    const int yes = 1;
    ::setsockopt(reservation.port.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  };
  if (use == PortUse::kConfigured) allow_reuse();
  if (!Bind(reservation.port, port)) return errno;
  allow_reuse();  // by the service that will listen
  return 0;
}

// The ports of a plan.
struct PlannedPorts {
  bool running = false;  // the fleet's own services use the configured ports
  std::set<int> all;
  std::vector<UniqueFd> reservations;

  void Add(Reservation reservation) {
    reservations.push_back(std::move(reservation.name));
    reservations.push_back(std::move(reservation.port));
  }
};

// Returns a free port outside the range from which the kernel assigns ports, and reserves it.
absl::StatusOr<int> FreePort(PlannedPorts& ports) {
  constexpr int kFirst = 20000;
  constexpr int kCount = 12000;
  for (int tries = 0; tries < 1000; ++tries) {
    uint32_t random = 0;
    if (::getrandom(&random, sizeof(random), 0) != sizeof(random)) break;
    const int port = kFirst + static_cast<int>(random % kCount);
    if (ports.all.contains(port)) continue;
    Reservation reservation;
    if (ReservePort(port, PortUse::kNew, reservation) == 0) {
      ports.Add(std::move(reservation));
      return port;
    }
  }
  return errors::NoFreePort(kFirst, kFirst + kCount - 1);
}

// Returns the configured port, so that the addresses of a fleet stay, or any free port if another
// program uses that one. Reserves it. `configured` is 0 if there is none.
absl::StatusOr<int> FreePort(int configured, PlannedPorts& ports) {
  if (configured == 0) return FreePort(ports);
  if (ports.running) return configured;
  Reservation reservation;
  const int fault = ReservePort(configured, PortUse::kConfigured, reservation);
  if (fault == EADDRINUSE) return FreePort(ports);
  if (fault == 0) ports.Add(std::move(reservation));
  return configured;
}

bool IsIpAddress(const std::string& text) {
  std::array<unsigned char, sizeof(struct in6_addr)> address;
  return ::inet_pton(AF_INET, text.c_str(), address.data()) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), address.data()) == 1;
}

// Returns true for FIRST-LAST, and for 0: any free ports.
bool IsPortRange(const std::string& text) {
  if (text == "0") return true;
  const std::vector<std::string> ends = absl::StrSplit(text, '-');
  int first = 0;
  int last = 0;
  return ends.size() == 2 && absl::SimpleAtoi(ends[0], &first) &&
         absl::SimpleAtoi(ends[1], &last) && 0 < first && first <= last && last <= kMaxPort;
}

absl::StatusOr<std::string> LegacyPorts(const Home& home, const AddressOptions& options) {
  if (!options.legacy_ports.empty()) return options.legacy_ports;
  ASSIGN_OR_RETURN(const std::string configured, ConfigValue(home, "gateway", "legacy_ports"));
  if (!configured.empty() && options.port.value_or(0) == 0) return configured;
  const int base = options.port.value_or(kDefaultPort);
  if (base == 0) return std::string("0");
  return absl::StrCat(base + kLegacyOffset, "-", base + kLegacyOffset + kLegacyCount - 1);
}

absl::StatusOr<std::string> LegacyHost(const Home& home, const AddressOptions& options) {
  if (!options.legacy_host) return ConfigValue(home, "aggregator", "legacy_host");
  return *options.legacy_host;
}

// Keeps the configured port unless the options name another one.
absl::StatusOr<int> LegacyPort(const Home& home, const AddressOptions& options,
                               PlannedPorts& ports) {
  const int requested = options.legacy_port.value_or(
      options.port.value_or(0) == 0 ? 0 : *options.port + kLegacyPortOffset);
  if (requested != 0) return requested;
  ASSIGN_OR_RETURN(const std::string text, ConfigValue(home, "gateway", "legacy_port"));
  int configured = 0;
  if (!absl::SimpleAtoi(text, &configured)) configured = 0;
  if (options.legacy_port || options.port) return FreePort(configured, ports);
  return configured != 0 ? configured : kDefaultPort + kLegacyPortOffset;
}

// An additional listener of a service: its key in the configuration, and its default port.
struct ExtraListener {
  std::string_view service;
  std::string_view key;
  int port = 0;
  int offset = 0;  // from --port
};
constexpr ExtraListener kStatusListener = {"gateway", "status_listen", 8002, 2};
constexpr ExtraListener kJoin = {"aggregator", "join_listen", kDefaultPort + 4, 4};

// Uses the host of the service. Keeps the configured port unless the options name another one.
absl::StatusOr<HostPort> PlanExtraListener(const Home& home, const AddressOptions& options,
                                           const ExtraListener& listener, const AddressPlan& plan,
                                           PlannedPorts& ports) {
  ASSIGN_OR_RETURN(const std::string configured,
                   ConfigValue(home, listener.service, std::string(listener.key)));
  HostPort address{plan.listen.find(listener.service)->second.host,
                   static_cast<uint16_t>(listener.port)};
  const std::optional<HostPort> known = ParseHostPort(configured);
  const uint16_t known_port = known ? known->port : 0;
  if (options.port.value_or(0) != 0) {
    address.port = static_cast<uint16_t>(*options.port + listener.offset);
  } else if (options.port) {
    ASSIGN_OR_RETURN(const int port, FreePort(known_port, ports));
    address.port = static_cast<uint16_t>(port);
  } else if (known_port != 0) {
    address.port = known_port;
  }
  ports.all.insert(address.port);
  return address;
}

absl::StatusOr<std::string> StatusPorts(const Home& home, const AddressOptions& options) {
  ASSIGN_OR_RETURN(const std::string configured, ConfigValue(home, "gateway", "status_ports"));
  if (options.port.value_or(0) != 0) {
    const int first = *options.port + kStatusPortsOffset;
    return absl::StrCat(first, "-", first + kStatusPortsCount - 1);
  }
  if (!configured.empty()) return configured;
  return std::string(options.port ? "0" : kDefaultStatusPorts);
}

// Returns the requested port; 0 for "any", nothing if the options name none.
std::optional<int> RequestedPort(const AddressOptions& options, std::string_view service) {
  const auto service_port = options.service_port.find(service);
  if (service_port != options.service_port.end()) return service_port->second;
  if (!options.port) return std::nullopt;
  return *options.port == 0 ? 0 : *options.port + PortOffset(service);
}

absl::StatusOr<HostPort> PlanListen(const Home& home, const AddressOptions& options,
                                    std::string_view service, PlannedPorts& ports) {
  ASSIGN_OR_RETURN(const auto configured, ListenAddress(home, service));
  HostPort address{"127.0.0.1", static_cast<uint16_t>(kDefaultPort + PortOffset(service))};
  if (configured.has_value()) address = *configured;
  const std::optional<int> requested = RequestedPort(options, service);
  if (requested.value_or(0) != 0) {
    address.port = static_cast<uint16_t>(*requested);
  } else if (requested) {
    const int known_port = configured.has_value() ? configured->port : 0;
    ASSIGN_OR_RETURN(const int port, FreePort(known_port, ports));
    address.port = static_cast<uint16_t>(port);
  }
  if (!options.bind.empty()) {
    address.host = options.bind;
  } else if (!options.advertise.empty()) {
    const bool remote = !std::ranges::all_of(options.advertise, IsLoopback);
    if (remote && IsLoopback(address.host)) address.host = "0.0.0.0";
  }
  return address;
}

std::vector<std::string> AdvertisedAddresses(const AddressPlan& plan, uint16_t port,
                                             std::string_view scheme) {
  std::vector<std::string> all;
  for (const std::string& host : plan.advertise) {
    all.push_back(absl::StrCat(std::string(scheme), HostPort{host, port}.ToString()));
  }
  return all;
}

}  // namespace

absl::Status CheckAddressOptions(const AddressOptions& options) {
  for (const std::string& host : options.advertise) {
    RETURN_IF_ERROR(Annotate(CheckHost(host), "--advertise"));
  }
  if (!options.bind.empty() && !IsIpAddress(options.bind)) {
    return Annotate(errors::InvalidBindAddress(options.bind), "--bind");
  }
  if (!options.legacy_ports.empty() && !IsPortRange(options.legacy_ports)) {
    return Annotate(errors::InvalidPortRange(options.legacy_ports), "--legacy-ports");
  }
  const std::string host = options.legacy_host.value_or("");
  if (!host.empty() && !IsRunHostPattern(host)) {
    return Annotate(errors::InvalidHostPattern(host, kRunHostRule), "--legacy-host");
  }
  return absl::OkStatus();
}

absl::StatusOr<AddressPlan> PlanAddresses(const Home& home, const AddressOptions& options,
                                          bool running) {
  RETURN_IF_ERROR(CheckAddressOptions(options));
  AddressPlan plan;
  PlannedPorts ports{.running = running};
  for (const std::string_view service : kServices) {
    ASSIGN_OR_RETURN(const HostPort address, PlanListen(home, options, service, ports));
    ports.all.insert(address.port);
    plan.listen.emplace(service, address);
  }
  plan.advertise = options.advertise;
  if (plan.advertise.empty()) {
    ASSIGN_OR_RETURN(plan.advertise, ConfigList(home, "aggregator", "advertise"));
  }
  if (plan.advertise.empty()) plan.advertise = {"127.0.0.1"};
  ASSIGN_OR_RETURN(plan.legacy_ports, LegacyPorts(home, options));
  ASSIGN_OR_RETURN(plan.legacy_host, LegacyHost(home, options));
  ASSIGN_OR_RETURN(plan.legacy_port, LegacyPort(home, options, ports));
  ports.all.insert(plan.legacy_port);
  ASSIGN_OR_RETURN(plan.status_listener,
                   PlanExtraListener(home, options, kStatusListener, plan, ports));
  ASSIGN_OR_RETURN(plan.join, PlanExtraListener(home, options, kJoin, plan, ports));
  ASSIGN_OR_RETURN(plan.status_ports, StatusPorts(home, options));
  plan.reservations = std::move(ports.reservations);
  return plan;
}

std::string LocalTarget(const HostPort& listen) {
  HostPort target = listen;
  if (target.host == "0.0.0.0") target.host = "127.0.0.1";
  if (target.host == "::") target.host = "::1";
  return target.ToString();
}

ConfigValues AddressValues(const AddressPlan& plan, std::string_view service) {
  const HostPort& listen = plan.listen.find(service)->second;
  const auto local = [&plan](std::string_view other) {
    return YamlList({LocalTarget(plan.listen.find(other)->second)});
  };
  const auto port_of = [&plan](std::string_view other) {
    return plan.listen.find(other)->second.port;
  };
  ConfigValues values = {{"listen", YamlText(listen.ToString())}};
  if (service == "aggregator") {
    values["advertise"] = YamlList(plan.advertise);
    values["legacy_host"] = YamlText(plan.legacy_host);
    values["join_listen"] = YamlText(plan.join.ToString());
    values["status_targets"] = YamlList(AdvertisedAddresses(plan, port_of("status"), ""));
    values["relay_targets"] = YamlList(AdvertisedAddresses(plan, port_of("relay"), ""));
    values["jobs_targets"] = YamlList(AdvertisedAddresses(plan, port_of("jobs"), ""));
    values["tunnel_targets"] =
        YamlList(AdvertisedAddresses(plan, plan.status_listener.port, "wss://"));
    values["gateway_urls"] = YamlList(AdvertisedAddresses(plan, port_of("gateway"), "https://"));
    values["status_urls"] =
        YamlList(AdvertisedAddresses(plan, plan.status_listener.port, "https://"));
    return values;
  }
  values["aggregator_targets"] = local("aggregator");
  if (service == "relay") {
    values["status_targets"] = local("status");
    values["jobs_targets"] = local("jobs");
    values["advertise"] = YamlList(AdvertisedAddresses(plan, listen.port, ""));
  }
  if (service == "jobs") values["relay_targets"] = local("relay");
  if (service == "gateway") {
    values["relay_targets"] = local("relay");
    values["jobs_targets"] = local("jobs");
    values["status_targets"] = local("status");
    values["legacy_bind"] = YamlText(listen.host);
    values["legacy_ports"] = YamlText(plan.legacy_ports);
    values["legacy_port"] = std::to_string(plan.legacy_port);
    values["status_listen"] = YamlText(plan.status_listener.ToString());
    values["status_urls"] =
        YamlList(AdvertisedAddresses(plan, plan.status_listener.port, "https://"));
    values["status_ports"] = YamlText(plan.status_ports);
    values["tunnel_relay"] = YamlText(LocalTarget(plan.listen.find("relay")->second));
    values["tunnel_join"] = YamlText(LocalTarget(plan.join));
  }
  return values;
}

}  // namespace muster::supervisor
