// The last step of every delivery: commits a result whose bytes are durable.
#ifndef MUSTER_SERVICES_AGGREGATOR_UPLOADS_RESULT_COMMITTER_H_
#define MUSTER_SERVICES_AGGREGATOR_UPLOADS_RESULT_COMMITTER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/base/metrics.h"
#include "services/common/blob/blob_store.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/revocation.h"
#include "services/common/store/state_store.h"
#include "services/common/upload/result_sink.h"

namespace muster {

// Thread-safe.
class ResultCommitter : public ResultSink {
 public:
  // Signatures have to lead to `fleet_root` by certificates that are not revoked. `metrics` gets
  // the histogram muster_commit_seconds and the counter muster_restored_results_total.
  // `max_run_bytes`: as in UploadLimits.
  ResultCommitter(StateStore& store, BlobStore& blobs, Executor& executor, const Clock& clock,
                  std::string fleet, Certificate fleet_root, const RevocationList& revocations,
                  Metrics& metrics, int64_t max_run_bytes = 0);

  // A relay's deliveries have to be signed by the node. SIGNATURE_REQUIRED, INVALID_SIGNATURE.
  absl::Status CheckSignature(const VerifiedResult& verified) const override;

  // `done` receives the result of the pair, which may be an earlier one with the same content, or
  // the refusal. It runs on the store's thread and must not block. Removes a blob that neither a
  // result nor a later owner of the upload needs.
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
  const int64_t max_run_bytes_;
  const Histogram seconds_;
  const Counter restored_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_UPLOADS_RESULT_COMMITTER_H_
