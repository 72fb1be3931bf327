// The signature of a node over a file that it shares with another node, which prevents relays from
// changing it.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_SHARE_SIGNATURE_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_SHARE_SIGNATURE_H_

#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/v1/shares.pb.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/key.h"

namespace muster {

// The tolerated clock difference between signer and verifier.
inline constexpr absl::Duration kShareClockSlack = absl::Minutes(5);

// Checks that `id` is a letter or digit followed by at most 252 of [A-Za-z0-9_.-], so that it can
// serve as a file name. Fails with INVALID_ARGUMENT (INVALID_SHARE).
absl::Status ValidateShareId(std::string_view id);

// Check the limits of key, size, hash and times. Fail with INVALID_SHARE.
absl::Status ValidateSharedFile(const v1::SharedFile& file);
absl::Status ValidateShareKey(const v1::ShareKey& key);

// Returns the signed text; message SharedFile of the API specifies it.
std::string ShareSignatureText(const v1::SharedFile& file);

// Sets signature and certificates of `file`; all other fields must be set.
absl::Status SignSharedFile(const PrivateKey& key, std::string_view chain_pem,
                            v1::SharedFile* file);

// Verifies that the node which `file` names as its source signed it. The certificate must chain to
// one of `roots` and be valid at the time of signing, and this time must not be after `now`. Does
// not check whether the file has expired. Fails with INVALID_SHARE, or with UNAUTHENTICATED
// (INVALID_SIGNATURE) and the cause.
absl::Status VerifySharedFile(const v1::SharedFile& file, std::string_view fleet,
                              std::span<const Certificate> roots, absl::Time now);

// Returns the time of expiry; infinitely late if the file does not expire.
absl::Time ExpiryOf(const v1::SharedFile& file);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_SHARE_SIGNATURE_H_
