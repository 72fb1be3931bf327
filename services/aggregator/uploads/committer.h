// The last step of every delivery: from bytes that are safe to a result that counts.
#ifndef MUSTER_SERVICES_AGGREGATOR_UPLOADS_COMMITTER_H_
#define MUSTER_SERVICES_AGGREGATOR_UPLOADS_COMMITTER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/blob/blob_store.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/revocation.h"
#include "services/common/store/state_store.h"
#include "services/common/upload/result_sink.h"

namespace muster {

// Thread-safe.
class Committer : public ResultSink {
 public:
  // `fleet_root` is what signatures have to lead to, by a certificate that is not revoked.
  Committer(StateStore& store, BlobStore& blobs, Executor& executor, const Clock& clock,
            std::string fleet, Certificate fleet_root, const RevocationList& revocations);

  // A result that a relay forwarded has to be signed. SIGNATURE_REQUIRED, INVALID_SIGNATURE.
  absl::Status CheckSignature(const VerifiedResult& verified) const override;

  // `done` gets what the pair has now: the result itself, or the same content that was there
  // before; or the refusal (errors.h). It runs on the store's thread and must not block. A blob
  // that neither a result nor a later owner of the upload needs is removed.
  void Commit(VerifiedResult verified, Done done) override;

 private:
  void RemoveLater(const std::string& blob);

  StateStore& store_;
  BlobStore& blobs_;
  Executor& executor_;
  const Clock& clock_;
  const std::string fleet_;
  const Certificate fleet_root_;
  const RevocationList& revocations_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_UPLOADS_COMMITTER_H_
