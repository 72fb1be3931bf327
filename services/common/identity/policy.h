// Who may do what: one table of role x RPC x resource; what it does not name is refused.
//
// Two questions are asked for every RPC. The gate in front of the handlers asks CheckRole (may this
// role call this method at all?); the handler, which knows what the call touches, asks Authorize.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_POLICY_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_POLICY_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "services/common/identity/identity.h"

namespace muster {

// Who calls. Behind the gateway `identity` is the gateway's verified client and `via` the gateway;
// behind a relay `identity` is a node below it and `via` the relay that holds the connection.
// `issuer` and `serial` are those of the connection's certificate.
struct Caller {
  Identity identity;
  std::optional<Identity> via;
  std::string issuer;  // key id, lower-case hex
  std::string serial;  // lower-case hex
  // Behind a relay: of the certificate with which the node signed that it may speak for it.
  std::string statement_issuer;
  std::string statement_serial;
};

// What a call touches.
struct Resource {
  enum class Kind {
    kFleet,    // the fleet itself: listing or creating runs, operators, the change feed, inspection
    kOwn,      // the caller's own identity (renewing its certificate)
    kRun,      // a run as a whole; `run` is set
    kPair,     // one (run, plugin, node); all three are set
    kListener  // the legacy listener of `run`
  };
  Kind kind = Kind::kFleet;
  std::string run;
  std::string plugin;
  std::string node;

  static Resource Fleet() { return {Kind::kFleet, "", "", ""}; }
  static Resource Own() { return {Kind::kOwn, "", "", ""}; }
  static Resource Run(std::string run) { return {Kind::kRun, std::move(run), "", ""}; }
  static Resource Listener(std::string run) { return {Kind::kListener, std::move(run), "", ""}; }
  static Resource Pair(std::string run, std::string plugin, std::string node) {
    return {Kind::kPair, std::move(run), std::move(plugin), std::move(node)};
  }
};

// Whether the caller's role may call `method` ("/muster.v1.RunService/GetRun") at all.
// UNIMPLEMENTED (UNKNOWN_METHOD) for one that has no row, else PERMISSION_DENIED
// (ROLE_NOT_ALLOWED).
absl::Status CheckRole(const Caller& caller, std::string_view method);

// CheckRole, and whether `method` may touch `resource` for this caller. A credential of a run and a
// node reach only what their names name: another's is PERMISSION_DENIED, reason NOT_YOURS. What
// only the plan knows is not decided here: whether a pair is planned, and for an enrolled node that
// asks for a run whether the run's plan names it.
absl::Status Authorize(const Caller& caller, std::string_view method, const Resource& resource);

// Every method that has a row, for the test that compares the table with the services.
std::vector<std::string_view> PolicyMethods();

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_POLICY_H_
