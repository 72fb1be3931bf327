#include "services/common/jobs/signing_files.h"

#include <cstdint>
#include <utility>

#include "services/common/base/file_ops.h"
#include "services/common/base/status_macros.h"
#include "services/common/identity/certificate.h"

namespace muster {
namespace {

constexpr int64_t kMaxPem = 64 * 1024;
// A renewal replaces key and certificate one after the other.
constexpr int kReads = 5;

}  // namespace

absl::StatusOr<SigningFiles> ReadSigningFiles(const std::string& folder) {
  for (int read = 1;; ++read) {
    ASSIGN_OR_RETURN(auto chain, ReadSmallFile(PosixFileOps(), folder + "/cert.pem", kMaxPem));
    ASSIGN_OR_RETURN(const auto pem, ReadSmallFile(PosixFileOps(), folder + "/key.pem", kMaxPem));
    ASSIGN_OR_RETURN(auto key, PrivateKey::FromPem(pem));
    ASSIGN_OR_RETURN(const auto leaf, Certificate::FromPem(chain));
    ASSIGN_OR_RETURN(const auto certified, leaf.Key());
    ASSIGN_OR_RETURN(const auto certified_sha256, certified.Sha256());
    ASSIGN_OR_RETURN(const auto own_sha256, key.public_key().Sha256());
    if (certified_sha256 == own_sha256 || read == kReads) {
      return SigningFiles{std::move(key), std::move(chain)};
    }
  }
}

}  // namespace muster
