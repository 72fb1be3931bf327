// The node's signature of the records of a job (JobRecord.RecordsSignature in jobs.proto).
#ifndef MUSTER_SERVICES_COMMON_JOBS_RECORDS_SIGNATURE_H_
#define MUSTER_SERVICES_COMMON_JOBS_RECORDS_SIGNATURE_H_

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/base/sha256.h"
#include "services/common/identity/key.h"
#include "services/common/identity/verified_chains.h"

namespace muster {

// Returns the digest of one record: 32 bytes over its sequence, time and content.
std::string DigestOf(const v1::JobRecord& record);

// The digest of all records of a node, in order. A value.
class RecordsDigest {
 public:
  RecordsDigest() = default;
  // Continues after the records with this digest.
  explicit RecordsDigest(std::string value) : value_(std::move(value)) {}

  void Add(const v1::JobRecord& record);
  const std::string& value() const { return value_; }

 private:
  std::string value_ = std::string(kSha256Size, '\0');
};

// Signs a final record, which the digest includes.
using FinalSigner = std::function<absl::StatusOr<v1::JobRecord::RecordsSignature>(
    const v1::JobRecord& final, const RecordsDigest& digest)>;

// Signs by the key of the first certificate of the chain.
absl::StatusOr<v1::JobRecord::RecordsSignature> SignFinal(const PrivateKey& key,
                                                          std::string_view chain_pem,
                                                          std::string_view fleet,
                                                          const v1::JobRecord& final,
                                                          const RecordsDigest& digest);

// Signs with the files key.pem and cert.pem of a folder, as they are at the time of the call.
FinalSigner SignerOfFolder(std::string folder, std::string fleet);

// Verifies that the node of the record signed it, with a certificate of the fleet that is valid
// now. Does not compare the digest of the other records: they may be incomplete. UNAUTHENTICATED or
// PERMISSION_DENIED, with the cause.
absl::Status VerifyFinal(const v1::JobRecord& final, std::string_view fleet,
                         VerifiedChains& chains);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_JOBS_RECORDS_SIGNATURE_H_
