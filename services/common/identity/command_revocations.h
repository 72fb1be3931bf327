// Whose signing certificates are not to be trusted any more, signed by the command authority, so
// that no relay can keep it back from or make it up for a node.
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

// At most so many names on a list.
inline constexpr int kMaxCommandRevocations = 10'000;

// The text under the signature; message CommandRevocations of the API states it.
std::string CommandRevocationsText(const v1::CommandRevocations& list, std::string_view fleet);

// Sets the signature of a list whose version and URIs are set. INVALID_ARGUMENT
// (INVALID_REVOCATIONS) unless they keep the bounds below.
absl::Status SignCommandRevocations(std::string_view fleet, const PrivateKey& key,
                                    v1::CommandRevocations* list);

// Whether the command authority signed this list: of a version of 1 or more, with at most
// kMaxCommandRevocations URIs of operators and gateways of the fleet. INVALID_ARGUMENT
// (INVALID_REVOCATIONS), or UNAUTHENTICATED (REVOCATIONS_REFUSED) if it did not. Whether a holder
// has a newer one already is its own question: a lower version is to be ignored.
absl::Status VerifyCommandRevocations(const v1::CommandRevocations& list, std::string_view fleet,
                                      const Certificate& command_ca);

// Whether the list names this signer.
bool IsRevoked(const v1::CommandRevocations& list, const Identity& signer);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_COMMAND_REVOCATIONS_H_
