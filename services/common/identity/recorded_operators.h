// The operators to whom the fleet has issued a certificate.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_RECORDED_OPERATORS_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_RECORDED_OPERATORS_H_

#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/identity/rpc_authorization.h"

namespace muster {

// Lets a gateway act only for operators that exist: nothing but the gateway's word proves that its
// client has the certificate of an operator. Until Replace is called, no operator is refused.
// Thread-safe; never waits.
class RecordedOperators {
 public:
  RecordedOperators(std::string_view fleet, const Clock& clock);

  // Returns the beginning of the URI of every operator.
  const std::string& prefix() const { return prefix_; }

  // The latest expiry of a certificate, by URI.
  using Expiries = absl::flat_hash_map<std::string, absl::Time>;

  // Replaces all operators.
  void Replace(Expiries expires) ABSL_LOCKS_EXCLUDED(mutex_);

  // Records that the identity has a certificate until `expires`, if it is an operator.
  void Add(std::string_view uri, absl::Time expires) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns OK unless a gateway forwards the identity of an operator without a valid recorded
  // certificate: PERMISSION_DENIED (OPERATOR_NOT_RECORDED). The certificates of other callers are
  // verified by the handshake.
  absl::Status Check(const Caller& caller) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const std::string prefix_;
  const Clock& clock_;
  mutable Mutex mutex_;
  Expiries expires_ ABSL_GUARDED_BY(mutex_);
  bool known_ ABSL_GUARDED_BY(mutex_) = false;  // Replace was called
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_RECORDED_OPERATORS_H_
