// The list of revoked signers of commands. The command authority signs it, so a relay can neither
// forge a list nor change one.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_COMMAND_REVOCATIONS_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_COMMAND_REVOCATIONS_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/identity.h"
#include "services/common/identity/key.h"

namespace muster {

// The limit of the names on a list.
inline constexpr int kMaxCommandRevocations = 10'000;

// Returns the signed text; message CommandRevocations of the API specifies it.
std::string CommandRevocationsText(const v1::CommandRevocations& list, std::string_view fleet);

// Sets the signature of a list that has a version and URIs. Fails with INVALID_ARGUMENT
// (INVALID_REVOCATIONS) if they exceed the limits of VerifyCommandRevocations.
absl::Status SignCommandRevocations(std::string_view fleet, const PrivateKey& key,
                                    v1::CommandRevocations* list);

// Verifies that the command authority signed this list, that its version is at least 1, and that it
// contains at most kMaxCommandRevocations URIs, all of operators and gateways of the fleet. Fails
// with INVALID_ARGUMENT (INVALID_REVOCATIONS), or UNAUTHENTICATED (REVOCATIONS_REFUSED) for a wrong
// signature. The caller must ignore a list with a lower version than its current one.
absl::Status VerifyCommandRevocations(const v1::CommandRevocations& list, std::string_view fleet,
                                      const Certificate& command_ca);

// Returns true if the list contains this signer.
bool IsRevoked(const v1::CommandRevocations& list, const Identity& signer);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_COMMAND_REVOCATIONS_H_
