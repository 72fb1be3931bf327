// The consumer of verified results: the aggregator commits them, a relay stores them in its spool.
#ifndef MUSTER_SERVICES_COMMON_UPLOAD_RESULT_SINK_H_
#define MUSTER_SERVICES_COMMON_UPLOAD_RESULT_SINK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/store/records.h"

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
  // A relay reports that it cannot deliver a spooled result: the proof was checked, and there is no
  // other signature. No result is stored.
  bool relay_report = false;
};

// Where verified results go. Thread-safe.
class ResultSink {
 public:
  using Done = absl::AnyInvocable<void(absl::StatusOr<ResultRecord>)>;

  virtual ~ResultSink() = default;

  // Reserves space for the first `size` bytes of an upload. Called after a chunk was verified and
  // before it is stored: a refusal leaves the upload as it was. Does not wait.
  virtual absl::Status Reserve(std::string_view /*upload_id*/, int64_t /*size*/) {
    return absl::OkStatus();
  }

  // Releases what Reserve reserved: the upload has ended because its bytes were not those that the
  // sender named. Does not wait.
  virtual void Release(std::string_view /*upload_id*/) {}

  // Returns OK if the result carries a signature that the sink accepts, or needs none. To be asked
  // before the bytes are published and the result is committed: a refusal leaves the upload as it
  // was. Computes for less than a millisecond and does not wait.
  virtual absl::Status CheckSignature(const VerifiedResult& verified) const = 0;

  // Commits a result whose signature was checked. `done` gets what the pair has now, or the
  // refusal; it must not block.
  virtual void Commit(VerifiedResult verified, Done done) = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_UPLOAD_RESULT_SINK_H_
