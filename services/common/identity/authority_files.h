// The fleet's CAs on disk.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_AUTHORITY_FILES_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_AUTHORITY_FILES_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/identity/authority.h"
#include "services/common/identity/home.h"

namespace muster {

// Loads the CA of the aggregator: intermediate.key, intermediate.crt, and the root in tls/ca.pem,
// all in the aggregator's folder. The certificate contains the name of the fleet. Fails with
// NOT_FOUND, FAILED_PRECONDITION (SECRET_FILE_EXPOSED, AUTHORITY_MISMATCH) or INVALID_ARGUMENT
// (KEY_MALFORMED, CERTIFICATE_MALFORMED); the message names the file.
absl::StatusOr<Intermediate> LoadIntermediate(const std::string& aggregator_folder);

// The root of a home.
struct RootFiles {
  Certificate certificate;
  std::optional<FleetRoot> root;  // absent while its key is offline
};

// Loads the root of a home, or creates it at the home's first start. Completes a root that a crash
// left incomplete. Never replaces an existing file: fails with FAILED_PRECONDITION
// (HOME_INCOMPLETE) if the fleet would break.
absl::StatusOr<RootFiles> EnsureRoot(const Home& home, std::string_view fleet, absl::Time now,
                                     std::vector<std::string>& done);

// Loads, creates or completes the intermediate of a home in the same way. Signs it again with the
// same key if half of its validity has passed and the root's key is present. Fails with
// FAILED_PRECONDITION (ROOT_KEY_OFFLINE) if it must be signed and the root's key is absent. Appends
// a line to `done` for each change.
absl::StatusOr<Intermediate> EnsureIntermediate(const Home& home, const RootFiles& root,
                                                std::string_view fleet, absl::Time now,
                                                std::vector<std::string>& done);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_AUTHORITY_FILES_H_
