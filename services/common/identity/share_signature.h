// A node's word for a file that it shares with another, so that nobody on the way can exchange it.
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

// How far the clocks of the one who signs and the one who reads may be apart.
inline constexpr absl::Duration kShareClockSlack = absl::Minutes(5);

// OK if `id` is a letter or digit followed by at most 252 of [A-Za-z0-9_.-], so that it is a plain
// file name wherever it is used. INVALID_ARGUMENT (INVALID_SHARE).
absl::Status ValidateShareId(std::string_view id);

// Whether key, size, hash and times are within their limits. INVALID_SHARE.
absl::Status ValidateSharedFile(const v1::SharedFile& file);
absl::Status ValidateShareKey(const v1::ShareKey& key);

// The text under the signature; message SharedFile of the API states it.
std::string ShareSignatureText(const v1::SharedFile& file);

// Puts signature and certificates into `file`, the rest of which is complete.
absl::Status SignSharedFile(const PrivateKey& key, std::string_view chain_pem,
                            v1::SharedFile* file);

// Whether the node that `file` names as its source has signed it, with a certificate that leads to
// one of `roots` and was good when it signed, no later than `now`. Whether it has expired is the
// caller's to ask. INVALID_SHARE, or UNAUTHENTICATED (INVALID_SIGNATURE) with the cause.
absl::Status VerifySharedFile(const v1::SharedFile& file, std::string_view fleet,
                              std::span<const Certificate> roots, absl::Time now);

// When it expires; infinitely late if never.
absl::Time ExpiryOf(const v1::SharedFile& file);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_SHARE_SIGNATURE_H_
