// The key and the certificate with which a node or a service signs.
#ifndef MUSTER_SERVICES_COMMON_JOBS_SIGNING_FILES_H_
#define MUSTER_SERVICES_COMMON_JOBS_SIGNING_FILES_H_

#include <string>

#include "absl/status/statusor.h"
#include "services/common/identity/key.h"

namespace muster {

struct SigningFiles {
  PrivateKey key;
  std::string chain_pem;  // the certificate of the key first
};

// Reads key.pem and cert.pem of a folder, as they are at the time of the call. A renewal may
// replace them meanwhile: then it reads them again. The errors of file_ops.h and PrivateKey.
absl::StatusOr<SigningFiles> ReadSigningFiles(const std::string& folder);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_JOBS_SIGNING_FILES_H_
