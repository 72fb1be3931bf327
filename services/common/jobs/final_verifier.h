// Verifies the signatures of many final records.
#ifndef MUSTER_SERVICES_COMMON_JOBS_FINAL_VERIFIER_H_
#define MUSTER_SERVICES_COMMON_JOBS_FINAL_VERIFIER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/identity/certificate.h"
#include "services/common/jobs/records_signature.h"

namespace muster {

// Remembers verified chains until they expire or the roots change: a node signs with the same chain
// as long as its certificate is valid, and its verification costs more than that of the signature.
// Thread-safe.
class FinalVerifier {
 public:
  // `roots` returns the current ones. The clock outlives this object.
  FinalVerifier(std::string fleet, std::function<std::vector<Certificate>()> roots,
                const Clock& clock);

  // Verifies that the node of the record signed it, with a certificate of the fleet that is valid
  // now. Does not compare the digest of the other records: they may be incomplete. UNAUTHENTICATED
  // or PERMISSION_DENIED, with the cause.
  absl::Status Verify(const v1::JobRecord& final) ABSL_LOCKS_EXCLUDED(mutex_);

  // The number of remembered chains.
  size_t size() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const std::string fleet_;
  const std::function<std::vector<Certificate>()> roots_;
  const Clock& clock_;
  mutable Mutex mutex_;
  std::vector<Certificate> verified_with_ ABSL_GUARDED_BY(mutex_);  // the roots of signers_
  // By the digest of the chain.
  absl::flat_hash_map<std::string, CertifiedNode> signers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_JOBS_FINAL_VERIFIER_H_
