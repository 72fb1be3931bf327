// The fleet's authorities on disk.
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

// What the aggregator issues with: intermediate.key, intermediate.crt and the root in tls/ca.pem,
// all below its own folder; the fleet's name is the one in the certificate. NOT_FOUND,
// FAILED_PRECONDITION (SECRET_FILE_EXPOSED, AUTHORITY_MISMATCH) or INVALID_ARGUMENT
// (KEY_MALFORMED, CERTIFICATE_MALFORMED); the message names the file.
absl::StatusOr<Intermediate> LoadIntermediate(const std::string& aggregator_folder);

// The root of a home, made if this is the home's first start; without its key where that is kept
// offline. What is half made is completed; what would break the fleet is refused
// (FAILED_PRECONDITION, HOME_INCOMPLETE): nothing that is there is ever replaced.
struct RootFiles {
  Certificate certificate;
  std::optional<FleetRoot> root;  // absent while its key is offline
};
absl::StatusOr<RootFiles> EnsureRoot(const Home& home, std::string_view fleet, absl::Time now,
                                     std::vector<std::string>& done);

// The intermediate of a home, made or completed in the same way, and signed again (same key) when
// half of its life is over and the root's key is there. FAILED_PRECONDITION (ROOT_KEY_OFFLINE) if
// it has to be signed and the key is not there. What was done is added to `done`, a line each.
absl::StatusOr<Intermediate> EnsureIntermediate(const Home& home, const RootFiles& root,
                                                std::string_view fleet, absl::Time now,
                                                std::vector<std::string>& done);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_AUTHORITY_FILES_H_
