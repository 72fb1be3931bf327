// The node's signature of the records of a job (JobRecord.RecordsSignature in jobs.proto).
#ifndef MUSTER_SERVICES_COMMON_JOBS_RECORDS_SIGNATURE_H_
#define MUSTER_SERVICES_COMMON_JOBS_RECORDS_SIGNATURE_H_

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/base/sha256.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/key.h"

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

// The node and the key that the certificates of a signature prove.
struct CertifiedNode {
  std::string node;
  PublicKey key;
  absl::Time expires;  // the first of the certificates
};

// Verifies a chain of a node of the fleet at `now`. UNAUTHENTICATED or PERMISSION_DENIED, with the
// cause.
absl::StatusOr<CertifiedNode> VerifyNodeChain(std::string_view chain_pem, std::string_view fleet,
                                              std::span<const Certificate> roots, absl::Time now);

// Verifies that this node is the node of the record and signed it. Does not compare the digest of
// the other records: they may be incomplete. The same errors.
absl::Status VerifyFinalBy(const CertifiedNode& signer, std::string_view fleet,
                           const v1::JobRecord& final);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_JOBS_RECORDS_SIGNATURE_H_
