#include "services/common/identity/rpc_authorization.h"

#include <array>
#include <cstdint>
#include <unordered_map>
#include <variant>

#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/identity.h"
#include "services/common/identity/rpc_table.h"

namespace muster {
namespace {

using Kind = Resource::Kind;

constexpr std::array kAllRoles = {Role::kOperator,    Role::kAggregator, Role::kStatus,
                                  Role::kGateway,     Role::kRelay,      Role::kJobs,
                                  Role::kNode,        Role::kRunNode,    Role::kRunPlugin,
                                  Role::kRunListener, Role::kRunViewer};

const RpcRow* FindRow(std::string_view method) {
  static const auto* const rows = [] {
    auto* map = new std::unordered_map<std::string_view, const RpcRow*>();
    for (const RpcRow& row : RpcTable()) map->emplace(row.method, &row);
    return map;
  }();
  const auto it = rows->find(method);
  return it == rows->end() ? nullptr : it->second;
}

uint32_t RolesOf(const RpcRow& row) {
  uint32_t roles = 0;
  for (const RpcGrant& grant : row.grants) roles |= grant.roles;
  return roles;
}

// Returns "spiffe://... (operator, forwarded by spiffe://...)".
std::string Describe(const Caller& caller) {
  const auto uri = [](const Identity& identity) {
    return ToUri(identity).value_or("an invalid identity");
  };
  std::string text =
      absl::StrCat(uri(caller.identity), " (", ToAbsl(RoleName(RoleOf(caller.identity))));
  if (caller.via) absl::StrAppend(&text, ", forwarded by ", uri(*caller.via));
  return text + ")";
}

std::string Describe(const Resource& resource) {
  switch (resource.kind) {
    case Kind::kFleet:
      return "the fleet";
    case Kind::kOwn:
      return "its own identity";
    case Kind::kRun:
      return absl::StrCat("run ", resource.run);
    case Kind::kListener:
      return absl::StrCat("the listener of run ", resource.run);
    case Kind::kPair:
      break;
  }
  return absl::StrCat("plugin ", resource.plugin, " on node ", resource.node, " of run ",
                      resource.run);
}

std::string RoleNames(uint32_t roles) {
  std::string names;
  for (const Role role : kAllRoles) {
    if ((roles & BitOf(role)) == 0) continue;
    absl::StrAppend(&names, names.empty() ? "" : ", ", ToAbsl(RoleName(role)));
  }
  return names;
}

// Returns true if the identity includes the resource. Operators and services are not restricted.
bool Covers(const Identity& identity, const Resource& resource) {
  const bool pair = resource.kind == Kind::kPair;
  if (const auto* r = std::get_if<RunNodeIdentity>(&identity.name)) {
    return r->run == resource.run &&
           (!pair || (r->plugin == resource.plugin && r->node == resource.node));
  }
  if (const auto* r = std::get_if<RunPluginIdentity>(&identity.name)) {
    return r->run == resource.run && (!pair || r->plugin == resource.plugin);
  }
  if (const auto* r = std::get_if<RunViewerIdentity>(&identity.name)) {
    return r->run == resource.run;
  }
  if (const auto* n = std::get_if<NodeIdentity>(&identity.name)) {
    return !pair || n->name == resource.node;
  }
  return true;
}

// Finds the row that lets this role call the method, or returns the error.
absl::Status FindAllowedRow(const Caller& caller, std::string_view method, const RpcRow*& row) {
  row = FindRow(method);
  if (row == nullptr) {
    // Not PERMISSION_DENIED: clients of reflection try its newer version first, and fall back to
    // the older one only after this code.
    return errors::UnknownMethod(method.substr(0, 200));
  }
  if (caller.via && (row->forwarders & BitOf(RoleOf(*caller.via))) == 0) {
    return errors::NotThroughAnother(Describe(caller), method);
  }
  if ((RolesOf(*row) & BitOf(RoleOf(caller.identity))) == 0) {
    return errors::RoleNotAllowed(Describe(caller), method, RoleNames(RolesOf(*row)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckRole(const Caller& caller, std::string_view method) {
  const RpcRow* row = nullptr;
  return FindAllowedRow(caller, method, row);
}

absl::Status Authorize(const Caller& caller, std::string_view method, const Resource& resource) {
  const RpcRow* row = nullptr;
  RETURN_IF_ERROR(FindAllowedRow(caller, method, row));
  const uint32_t role = BitOf(RoleOf(caller.identity));
  for (const RpcGrant& grant : row->grants) {
    if ((grant.roles & role) != 0 && (grant.kinds & BitOf(resource.kind)) != 0 &&
        Covers(caller.identity, resource)) {
      return absl::OkStatus();
    }
  }
  return errors::NotYours(Describe(caller), method, Describe(resource));
}

std::vector<std::string_view> AuthorizedMethods() {
  std::vector<std::string_view> methods;
  for (const RpcRow& row : RpcTable()) methods.push_back(row.method);
  return methods;
}

}  // namespace muster
