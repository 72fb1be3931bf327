// Keys and certificates in PEM files that Muster wrote.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_PEM_FILES_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_PEM_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/key.h"

namespace muster {

// Reads a private key that only its owner can read. Fails with NOT_FOUND, FAILED_PRECONDITION
// (SECRET_FILE_EXPOSED) or INVALID_ARGUMENT (KEY_MALFORMED); the message names the file.
absl::StatusOr<PrivateKey> ReadKeyFile(const std::string& path);

// Reads a private key, or creates it (0600, durable) if the file does not exist.
absl::StatusOr<PrivateKey> EnsureKeyFile(const std::string& path);

// Reads the certificates of a file of at most 256 KiB. Fails with NOT_FOUND or INVALID_ARGUMENT
// (CERTIFICATE_MALFORMED); the message names the file.
absl::StatusOr<std::vector<Certificate>> ReadChainFile(const std::string& path);

bool FileExists(const std::string& path);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_PEM_FILES_H_
