// The check of the node that signed a shared file.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_SIGNER_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_SIGNER_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/v1/shares.pb.h"
#include "services/relay/files/share_parts.h"

namespace muster {

// Returns OK if the source of the file signed it, with a certificate that is not revoked.
// INVALID_SHARE, INVALID_SIGNATURE, IDENTITY_REVOKED.
absl::Status VerifySigner(const v1::SharedFile& file, const ShareParts& parts);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_SIGNER_H_
