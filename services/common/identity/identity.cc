#include "services/common/identity/identity.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/names.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/identity.h"

namespace muster {
namespace {

constexpr std::string_view kScheme = "spiffe://";
constexpr size_t kRunIdLength = 16;
constexpr size_t kMaxFleet = 253 - kRunIdLength - 1;
constexpr size_t kMaxLabel = 63;
constexpr size_t kMaxUri = 2048;  // SPIFFE-ID, section 2.3

constexpr std::array<std::pair<ServiceRole, std::string_view>, 5> kServiceRoles = {{
    {ServiceRole::kAggregator, "aggregator"},
    {ServiceRole::kStatus, "status"},
    {ServiceRole::kGateway, "gateway"},
    {ServiceRole::kRelay, "relay"},
    {ServiceRole::kJobs, "jobs"},
}};

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};

bool IsLowerAlnum(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool IsValidName(std::string_view name) { return ValidateName("name", name).ok(); }

bool IsNodeName(std::string_view name) { return IsValidName(name) && name != kGlobalNode; }

// Quotes a URI from an untrusted peer: bounded and printable.
std::string Quoted(std::string_view uri) {
  constexpr size_t kShown = 200;
  return absl::StrCat("\"", absl::CHexEscape(ToAbsl(uri.substr(0, kShown))),
                      uri.size() > kShown ? "...\"" : "\"");
}

absl::Status Malformed(std::string_view uri, std::string_view why) {
  return errors::IdentityMalformed(Quoted(uri), why);
}

absl::Status Foreign(std::string_view uri, std::string_view fleet) {
  return errors::IdentityForeign(Quoted(uri), fleet);
}

std::vector<std::string_view> Split(std::string_view path) {
  std::vector<std::string_view> segments;
  while (true) {
    const size_t slash = path.find('/');
    segments.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return segments;
    path.remove_prefix(slash + 1);
  }
}

using Segments = std::vector<std::string_view>;

std::optional<Identity::Name> ParseFleetName(const Segments& path) {
  if (path.size() == 3 && path[0] == "service" && IsValidName(path[2])) {
    if (const auto role = ParseServiceRole(path[1])) {
      return ServiceIdentity{*role, std::string(path[2])};
    }
  }
  if (path.size() == 2 && path[0] == "user" && IsValidName(path[1])) {
    return UserIdentity{std::string(path[1])};
  }
  if (path.size() == 2 && path[0] == "node" && IsNodeName(path[1])) {
    return NodeIdentity{std::string(path[1])};
  }
  return std::nullopt;
}

std::optional<Identity::Name> ParseRunName(std::string_view run, const Segments& path) {
  if (path.size() == 1 && path[0] == "listener") return RunListenerIdentity{std::string(run)};
  if (path.size() == 1 && path[0] == "viewer") return RunViewerIdentity{std::string(run)};
  if (path.size() == 2 && path[0] == "plugin" && IsValidName(path[1])) {
    return RunPluginIdentity{std::string(run), std::string(path[1])};
  }
  if (path.size() == 4 && path[0] == "plugin" && IsValidName(path[1]) && path[2] == "node" &&
      IsValidName(path[3])) {
    return RunNodeIdentity{std::string(run), std::string(path[1]), std::string(path[3])};
  }
  return std::nullopt;
}

// Returns host and path without checking their content.
std::string Compose(const Identity& identity) {
  const auto fleet_uri = [&](auto&&... parts) {
    return absl::StrCat(ToAbsl(kScheme), identity.fleet, parts...);
  };
  const auto run_uri = [&](const std::string& run, auto&&... parts) {
    return absl::StrCat(ToAbsl(kScheme), RunHost(run, identity.fleet), parts...);
  };
  return std::visit(
      Overloaded{
          [&](const ServiceIdentity& s) {
            return fleet_uri("/service/", ToAbsl(ServiceRoleName(s.role)), "/", s.name);
          },
          [&](const UserIdentity& u) { return fleet_uri("/user/", u.name); },
          [&](const NodeIdentity& n) { return fleet_uri("/node/", n.name); },
          [&](const RunNodeIdentity& r) {
            return run_uri(r.run, "/plugin/", r.plugin, "/node/", r.node);
          },
          [&](const RunPluginIdentity& r) { return run_uri(r.run, "/plugin/", r.plugin); },
          [&](const RunListenerIdentity& r) { return run_uri(r.run, "/listener"); },
          [&](const RunViewerIdentity& r) { return run_uri(r.run, "/viewer"); },
      },
      identity.name);
}

}  // namespace

Role RoleOf(ServiceRole role) {
  switch (role) {
    case ServiceRole::kAggregator:
      return Role::kAggregator;
    case ServiceRole::kStatus:
      return Role::kStatus;
    case ServiceRole::kGateway:
      return Role::kGateway;
    case ServiceRole::kRelay:
      return Role::kRelay;
    case ServiceRole::kJobs:
      break;
  }
  return Role::kJobs;
}

Role RoleOf(const Identity& identity) {
  return std::visit(Overloaded{
                        [](const ServiceIdentity& s) { return RoleOf(s.role); },
                        [](const UserIdentity&) { return Role::kOperator; },
                        [](const NodeIdentity&) { return Role::kNode; },
                        [](const RunNodeIdentity&) { return Role::kRunNode; },
                        [](const RunPluginIdentity&) { return Role::kRunPlugin; },
                        [](const RunListenerIdentity&) { return Role::kRunListener; },
                        [](const RunViewerIdentity&) { return Role::kRunViewer; },
                    },
                    identity.name);
}

std::string_view RoleName(Role role) {
  switch (role) {
    case Role::kOperator:
      return "operator";
    case Role::kAggregator:
      return "aggregator";
    case Role::kStatus:
      return "status service";
    case Role::kGateway:
      return "gateway";
    case Role::kRelay:
      return "relay";
    case Role::kJobs:
      return "jobs service";
    case Role::kNode:
      return "node";
    case Role::kRunNode:
      return "run credential of one node";
    case Role::kRunPlugin:
      return "run credential of any node";
    case Role::kRunListener:
      return "run listener";
    case Role::kRunViewer:
      return "viewer of a run";
  }
  return "unknown role";
}

std::string_view ServiceRoleName(ServiceRole role) {
  for (const auto& [value, name] : kServiceRoles) {
    if (value == role) return name;
  }
  return "";
}

std::optional<ServiceRole> ParseServiceRole(std::string_view name) {
  for (const auto& [value, known] : kServiceRoles) {
    if (known == name) return value;
  }
  return std::nullopt;
}

std::optional<std::string_view> RunOf(const Identity& identity) {
  return std::visit(
      [](const auto& name) -> std::optional<std::string_view> {
        if constexpr (requires { name.run; }) {
          return name.run;
        } else {
          return std::nullopt;
        }
      },
      identity.name);
}

bool IsRunId(std::string_view text) {
  return text.size() == kRunIdLength && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

absl::Status CheckFleet(std::string_view fleet) {
  const auto fail = [&](std::string_view why) { return errors::InvalidFleet(Quoted(fleet), why); };
  if (fleet.empty()) return fail("it is empty");
  if (fleet.size() > kMaxFleet) {
    return fail(absl::StrCat("it is longer than ", kMaxFleet, " characters"));
  }
  size_t start = 0;
  while (true) {
    const std::string_view label = fleet.substr(start, fleet.find('.', start) - start);
    if (label.empty()) return fail("a label is empty");
    if (label.size() > kMaxLabel) return fail("a label is longer than 63 characters");
    if (!IsLowerAlnum(label.front()) || !IsLowerAlnum(label.back()) ||
        !std::all_of(label.begin(), label.end(),
                     [](char c) { return IsLowerAlnum(c) || c == '-'; })) {
      return fail("a label is not made of a-z, 0-9 and inner hyphens");
    }
    start += label.size() + 1;
    if (start > fleet.size()) return absl::OkStatus();
  }
}

std::string RunHost(std::string_view run, std::string_view fleet) {
  return absl::StrCat(ToAbsl(run), ".", ToAbsl(fleet));
}

absl::StatusOr<Identity> ParseIdentity(std::string_view uri, std::string_view fleet) {
  if (uri.size() > kMaxUri) return Malformed(uri, "it is longer than 2048 characters");
  if (!uri.starts_with(kScheme)) return Malformed(uri, "it does not begin with spiffe://");
  const std::string_view rest = uri.substr(kScheme.size());
  const size_t slash = rest.find('/');
  if (slash == std::string_view::npos) return Malformed(uri, "it has no path");
  const std::string_view host = rest.substr(0, slash);
  const Segments path = Split(rest.substr(slash + 1));

  std::optional<Identity::Name> name;
  if (host == fleet) {
    name = ParseFleetName(path);
  } else {
    const std::string_view run = host.substr(0, kRunIdLength);
    if (!IsRunId(run) || host != RunHost(run, fleet)) return Foreign(uri, fleet);
    name = ParseRunName(run, path);
  }
  if (!name) return Malformed(uri, "its path has none of the known forms");
  return Identity{std::string(fleet), *std::move(name)};
}

absl::StatusOr<Identity> ParseOwnIdentity(std::string_view uri) {
  if (!uri.starts_with(kScheme)) return Malformed(uri, "it does not begin with spiffe://");
  std::string_view fleet = uri.substr(kScheme.size());
  const size_t slash = std::min(fleet.find('/'), fleet.size());
  const std::string_view path = fleet.substr(slash);
  fleet = fleet.substr(0, slash);
  if (path == "/listener" || path == "/viewer" || path.starts_with("/plugin/")) {
    fleet.remove_prefix(std::min(kRunIdLength + 1, fleet.size()));
  }
  if (!CheckFleet(fleet).ok()) return Malformed(uri, "its host is not a valid fleet name");
  return ParseIdentity(uri, fleet);
}

absl::StatusOr<std::string> ToUri(const Identity& identity) {
  RETURN_IF_ERROR(CheckFleet(identity.fleet));
  std::string uri = Compose(identity);
  const auto back = ParseIdentity(uri, identity.fleet);
  if (!back.ok() || *back != identity) {
    return errors::InvalidIdentity(Quoted(uri));
  }
  return uri;
}

}  // namespace muster
