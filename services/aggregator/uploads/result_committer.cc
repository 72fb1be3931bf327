#include "services/aggregator/uploads/result_committer.h"

#include <utility>

#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/results.h"
#include "services/common/errors/runs.h"
#include "services/common/identity/identity.h"
#include "services/common/upload/delivery_signature.h"

namespace muster {
namespace {

using Verdict = CommitResult::Verdict;

// The limit that a refusal names.
struct RunLimit {
  int64_t more = 0;  // bytes of the result
  int64_t limit = 0;
};

absl::Status Refusal(const CommitResult::Result& outcome, const ResultKey& key,
                     const std::string& upload_id, const RunLimit& of_run) {
  switch (outcome.verdict) {
    case Verdict::kCommitted:
    case Verdict::kSame:
    case Verdict::kErrorKept:
      return absl::OkStatus();
    case Verdict::kConflict:
      return errors::ResultConflict(key.plugin, key.node);
    case Verdict::kNotPlanned:
      return errors::PairNotPlanned(key.run, key.plugin, key.node);
    case Verdict::kRunNotFound:
      return errors::RunNotFound(key.run);
    case Verdict::kSealed:
      return errors::RunSealed(key.run);
    case Verdict::kCancelled:
      return errors::RunCancelled(key.run);
    case Verdict::kTakenOver:
      return errors::TakenOver(upload_id);
    case Verdict::kRunFull:
      return errors::RunFull(key.run, outcome.run_bytes, of_run.more, of_run.limit);
  }
  return absl::InternalError("unknown verdict");
}

// A relay delays what it forwards, and must not alter it: the gateway's clients cannot sign, nodes
// can.
bool IsRelay(const std::string& uri, const std::string& fleet) {
  if (uri.empty()) return false;
  const auto identity = ParseIdentity(uri, fleet);
  return identity.ok() && RoleOf(*identity) == Role::kRelay;
}

}  // namespace

ResultCommitter::ResultCommitter(StateStore& store, BlobStore& blobs, Executor& executor,
                                 const Clock& clock, std::string fleet, Certificate fleet_root,
                                 const RevocationList& revocations, Metrics& metrics,
                                 int64_t max_run_bytes)
    : store_(store),
      blobs_(blobs),
      executor_(executor),
      clock_(clock),
      fleet_(std::move(fleet)),
      fleet_root_(std::move(fleet_root)),
      revocations_(revocations),
      max_run_bytes_(max_run_bytes),
      seconds_(metrics.AddHistogram("muster_commit_seconds",
                                    "Time from a verified result to its durable row.",
                                    LatencyBounds())),
      restored_(metrics.AddCounter(
          "muster_restored_results_total",
          "Damaged stored results that were replaced by the same content, delivered again.")) {}

absl::Status ResultCommitter::CheckSignature(const VerifiedResult& verified) const {
  const ResultRecord& result = verified.result;
  if (result.delivery.signature.empty()) {
    return IsRelay(result.delivery.vouched_by, fleet_) && !verified.relay_report
               ? errors::SignatureRequired(result.key.node)
               : absl::OkStatus();
  }
  RETURN_IF_ERROR(VerifyDeliverySignature(verified, fleet_, fleet_root_,
                                          verified.signed_at.value_or(clock_.Now())));
  ASSIGN_OR_RETURN(const auto signer, Certificate::FromPem(result.delivery.signer_pem));
  if (revocations_.Contains(CertificateSubject(signer.IssuerKeyId(), signer.Serial()))) {
    return errors::InvalidSignature("the certificate that signed it is revoked");
  }
  return absl::OkStatus();
}

void ResultCommitter::Commit(VerifiedResult verified, Done done) {
  CommitResult command;
  command.upload_id = verified.upload_id;
  command.epoch = verified.epoch;
  command.relay_report = verified.relay_report;
  command.max_run_bytes = max_run_bytes_;
  const Delivery& delivery = verified.result.delivery;
  if (!delivery.signature.empty() && !delivery.node_unproven) {
    command.signed_attempt = verified.attempt;
  }
  command.result = std::move(verified.result);
  command.result.committed_at = absl::ToUnixMicros(clock_.Now());
  const ResultKey key = command.result.key;
  const std::string blob = command.result.blob;
  const std::string upload_id = command.upload_id;
  const RunLimit of_run{command.result.size, max_run_bytes_};
  const absl::Duration began = clock_.MonotonicNow();
  store_.Apply(
      std::move(command), [this, key, blob, upload_id, of_run, began, done = std::move(done)](
                              absl::StatusOr<CommitResult::Result> outcome) mutable {
        seconds_.Observe(absl::ToDoubleSeconds(clock_.MonotonicNow() - began));
        // A failed commit is undecided for us, so the blob stays: a retry finds it again.
        if (!outcome.ok()) return done(outcome.status());
        if (outcome->blob_unused) RemoveLater(blob);
        if (outcome->repaired) {
          restored_.Add();
          Log(LogLevel::kInfo, "a damaged result was delivered again",
              {{"run", key.run}, {"plugin", key.plugin}, {"node", key.node}});
        }
        if (const absl::Status refusal = Refusal(*outcome, key, upload_id, of_run); !refusal.ok()) {
          LogLimited(LogLevel::kWarning, "delivery refused", key.node,
                     {{"run", key.run},
                      {"plugin", key.plugin},
                      {"node", key.node},
                      {"reason", ReasonOf(refusal)}});
          return done(refusal);
        }
        done(std::move(outcome->head));
      });
}

void ResultCommitter::RemoveLater(const std::string& blob) {
  if (blob.empty()) return;
  const bool queued = executor_.Post([this, blob] {
    if (const absl::Status status = blobs_.Remove(blob); !status.ok()) {
      Log(LogLevel::kWarning, "cannot remove an unused blob", {{"blob", blob}, {"error", status}});
    }
  });
  if (!queued) Log(LogLevel::kWarning, "an unused blob is kept", {{"blob", blob}});
}

}  // namespace muster
