// What makes a home a fleet: its name, its authorities, and the first certificates.
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
  // A trust domain such as "fleet.example.com". Empty: the one this home has, or "fleet-<8 hex
  // digits>.muster" for a new one.
  std::string fleet;
  // Names and addresses under which the services can be reached, for their certificates; localhost
  // and the loopback addresses are always there.
  std::vector<std::string> hosts;
  // The first operator. Empty: whoever context.json names, or "admin" for a new home.
  std::string operator_name;
  // For the context file; each is kept as it is there where it is empty here.
  std::vector<std::string> aggregator_targets;
  std::vector<std::string> status_targets;
  std::vector<std::string> relay_targets;
  std::vector<std::string> gateway_urls;
};

struct BootstrapReport {
  std::string fleet;
  std::string operator_name;
  // What was made or renewed now, a line for people each; empty if all was there.
  std::vector<std::string> done;
};

// Makes what a home lacks and renews certificates of which half the life is over. Safe to call
// again at any time, also while the services run and after a crash at any point: what is half made
// is completed, keys are made once and never replaced. What cannot be completed without breaking
// the fleet is refused with a message that says what to restore: FAILED_PRECONDITION
// (HOME_INCOMPLETE, ROOT_KEY_OFFLINE, FLEET_EXISTS, AUTHORITY_MISMATCH, SECRET_FILE_EXPOSED).
// Concurrent calls wait for each other.
absl::StatusOr<BootstrapReport> Bootstrap(const Home& home, const BootstrapOptions& options,
                                          absl::Time now);

// The name in fleet.json. NOT_FOUND (HOME_NOT_SET_UP) before the first Bootstrap.
absl::StatusOr<std::string> ReadFleet(const Home& home);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_BOOTSTRAP_H_
