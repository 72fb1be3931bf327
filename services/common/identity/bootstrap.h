// Creates a fleet in a home: its name, its CAs, and the first certificates.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_BOOTSTRAP_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_BOOTSTRAP_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/identity/context.h"
#include "services/common/identity/home.h"

namespace muster {

struct BootstrapOptions {
  // A trust domain such as "fleet.example.com". If empty, the home's name remains, and a new home
  // gets "fleet-<8 hex digits>.muster".
  std::string fleet;
  // Names and addresses of the services, for their certificates; localhost and the loopback
  // addresses are always included.
  std::vector<std::string> hosts;
  // The first operator. If empty, the operator in context.json, or "admin" for a new home.
  std::string operator_name;
  // For the context file. An empty list keeps the addresses in the file.
  std::vector<std::string> aggregator_targets;
  std::vector<std::string> status_targets;
  std::vector<std::string> relay_targets;
  std::vector<std::string> jobs_targets;
  std::vector<std::string> gateway_urls;
};

struct BootstrapReport {
  std::string fleet;
  std::string operator_name;
  // Describes what was created or renewed, one line each; empty if nothing changed.
  std::vector<std::string> done;
};

// Creates missing files and renews certificates of which half of the validity has passed. May be
// called again at any time, also while the services run or after a crash: it completes what a crash
// left incomplete, and never replaces a key. Fails with FAILED_PRECONDITION (HOME_INCOMPLETE,
// ROOT_KEY_OFFLINE, FLEET_EXISTS, AUTHORITY_MISMATCH, SECRET_FILE_EXPOSED) if completion would
// break the fleet; the message names the file to restore. Concurrent calls are serialised.
absl::StatusOr<BootstrapReport> Bootstrap(const Home& home, const BootstrapOptions& options,
                                          absl::Time now);

// Returns the name in fleet.json. Fails with NOT_FOUND (HOME_NOT_SET_UP) before the first
// Bootstrap.
absl::StatusOr<std::string> ReadFleet(const Home& home);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_BOOTSTRAP_H_
