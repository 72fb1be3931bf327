// Keys and certificates in files.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_PEM_FILES_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_PEM_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/key.h"

namespace muster {

// A private key that only its owner can read. NOT_FOUND, FAILED_PRECONDITION (SECRET_FILE_EXPOSED)
// or as PrivateKey::FromPem; the message names the file.
absl::StatusOr<PrivateKey> ReadKeyFile(const std::string& path);

// The same; makes the key (0600, durable) if there is no file.
absl::StatusOr<PrivateKey> EnsureKeyFile(const std::string& path);

// The certificates of a file of at most 256 KiB. NOT_FOUND or as ParseChain; the message names the
// file.
absl::StatusOr<std::vector<Certificate>> ReadChainFile(const std::string& path);

bool FileExists(const std::string& path);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_PEM_FILES_H_
