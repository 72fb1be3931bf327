// The last step of every delivery: from bytes that are safe to a result that counts.
#ifndef MUSTER_SERVICES_AGGREGATOR_UPLOADS_COMMITTER_H_
#define MUSTER_SERVICES_AGGREGATOR_UPLOADS_COMMITTER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/blob/blob_store.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/revocation.h"
#include "services/common/store/state_store.h"

namespace muster {

// A result whose bytes were verified. When it is committed they are durable (or inline, to be made
// so by the commit).
struct VerifiedResult {
  ResultRecord result;  // generation and time are set by the commit
  std::string upload_id;
  int64_t epoch = 0;
  int64_t attempt = 0;  // what the signature covers
  // When the signer's certificate has to be good; absent: now.
  std::optional<absl::Time> signed_at;
  // A relay says that what it had taken has expired: the proof was checked, and there is no other
  // signature.
  bool expired_at_relay = false;
};

// Where verified results go. Thread-safe.
class ResultSink {
 public:
  using Done = absl::AnyInvocable<void(absl::StatusOr<ResultRecord>)>;

  virtual ~ResultSink() = default;

  // Returns OK if the result carries a signature that the sink accepts, or needs none. To be asked
  // before the bytes are published and the result is committed: a refusal leaves the upload as it
  // was. Computes for less than a millisecond and does not wait.
  virtual absl::Status CheckSignature(const VerifiedResult& verified) const = 0;

  // Commits a result whose signature was checked. `done` gets what the pair has now, or the
  // refusal; it must not block.
  virtual void Commit(VerifiedResult verified, Done done) = 0;
};

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
