// Authorisation: one table of role x RPC x resource. Everything that is not in the table is
// refused.
//
// Every RPC is checked twice. The gate in front of the handlers calls CheckRole. The handler, which
// knows the resource, calls Authorize.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_RPC_AUTHORIZATION_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_RPC_AUTHORIZATION_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/common/identity/identity.h"

namespace muster {

// The caller of an RPC. Behind the gateway, `identity` is the gateway's verified client and `via`
// the gateway. Behind a relay, `identity` is one of its descendants and `via` the relay with the
// connection. `issuer` and `serial` identify the connection's certificate.
struct Caller {
  Identity identity;
  std::optional<Identity> via;
  std::string issuer;  // key id, lower-case hex
  std::string serial;  // lower-case hex
  // Behind a relay: identify the certificate that signed the node's attach statement.
  std::string statement_issuer;
  std::string statement_serial;
  absl::Time expires = absl::InfiniteFuture();  // the connection's certificate
  // Behind a gateway: identifies the certificate of its client if others have the same URI.
  std::string forwarded_certificate;
};

// The object of a call.
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

// Checks that the caller's role may call `method` ("/muster.v1.RunService/GetRun") at all. Fails
// with UNIMPLEMENTED (UNKNOWN_METHOD) for a method without a row, otherwise with PERMISSION_DENIED
// (ROLE_NOT_ALLOWED).
absl::Status CheckRole(const Caller& caller, std::string_view method);

// Calls CheckRole, and checks that the caller may use `method` on `resource`. A run credential or a
// node may access only the resources in its identity; others fail with PERMISSION_DENIED
// (NOT_YOURS). The caller of this function checks what requires the plan: that a pair is planned,
// and that the plan of a run names an enrolled node that reads it.
absl::Status Authorize(const Caller& caller, std::string_view method, const Resource& resource);

// Returns every method with a row, for the test that compares the table with the services.
std::vector<std::string_view> AuthorizedMethods();

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_RPC_AUTHORIZATION_H_
