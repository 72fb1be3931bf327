// What relays answer: their part of the catalogue (services/common/errors.h).
#ifndef MUSTER_SERVICES_RELAY_ERRORS_H_
#define MUSTER_SERVICES_RELAY_ERRORS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace muster::errors {

// Attachment.
absl::Status InvalidAttachment(std::string_view why);
absl::Status StatementRefused(std::string_view why);
absl::Status StatementExpired();
absl::Status NoHello();
absl::Status RelayLoop(std::string_view relay, std::string_view parent);
absl::Status RelayTooDeep(std::string_view relay, size_t limit);
absl::Status TooManyChildren(int64_t limit);
absl::Status ChildTakenOver(std::string_view child);
absl::Status ChildStuck(std::string_view child);
absl::Status IdentityRevoked(std::string_view uri);
absl::Status NotAttached(std::string_view node, std::string_view relay);

// Jobs.
absl::Status JobNotFound(std::string_view job);
absl::Status JobExists(std::string_view job);
absl::Status TooManyJobs(int64_t limit);
absl::Status InvalidCommand(std::string_view why);
absl::Status CommandRefused(std::string_view why);
absl::Status InvalidPosition(int64_t position);
absl::Status NotTheRoot(std::string_view relay);
absl::Status NoCommandAuthority();

}  // namespace muster::errors

#endif  // MUSTER_SERVICES_RELAY_ERRORS_H_
