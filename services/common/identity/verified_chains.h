// Certificate chains that peers send with their signatures.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_VERIFIED_CHAINS_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_VERIFIED_CHAINS_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/key.h"

namespace muster {

// The content of the first certificate of a verified chain.
struct VerifiedChain {
  std::string uri;
  PublicKey key;
  std::string issuer;  // with `serial`, as in Caller
  std::string serial;
  absl::Time not_after;
  absl::Time expires;  // the first of all certificates
};

// Verifies a chain of a client, its own certificate first, at `now`. The errors of ParseChain,
// VerifyChain, Certificate::Uri and Certificate::Key.
absl::StatusOr<VerifiedChain> VerifyClientChain(std::string_view chain_pem,
                                                std::span<const Certificate> roots, absl::Time now);

// Remembers verified chains until they expire or the roots change: a peer signs with the same chain
// as long as its certificate is valid, and the verification of a chain costs more than that of a
// signature. Remembers one chain of each certificate, so that a peer that varies the text of its
// chain replaces only its own. A process has one. Thread-safe.
class VerifiedChains {
 public:
  // `roots` returns the current ones, on any thread, and must not wait. The clock outlives this
  // object.
  VerifiedChains(std::function<std::vector<Certificate>()> roots, const Clock& clock);

  // Verifies a chain as VerifyClientChain does, now and with the current roots.
  absl::StatusOr<std::shared_ptr<const VerifiedChain>> Verify(std::string_view chain_pem)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The number of remembered chains.
  size_t size() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Clear() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::function<std::vector<Certificate>()> roots_;
  const Clock& clock_;
  mutable Mutex mutex_;
  std::vector<Certificate> verified_with_ ABSL_GUARDED_BY(mutex_);  // the roots of chains_
  // By the digest of the PEM text.
  absl::flat_hash_map<std::string, std::shared_ptr<const VerifiedChain>> chains_
      ABSL_GUARDED_BY(mutex_);
  // The key in chains_ of each certificate, by issuer and serial.
  absl::flat_hash_map<std::pair<std::string, std::string>, std::string> digests_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_VERIFIED_CHAINS_H_
