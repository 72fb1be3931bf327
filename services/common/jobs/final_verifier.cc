#include "services/common/jobs/final_verifier.h"

#include <cstddef>
#include <optional>
#include <utility>

#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"

namespace muster {
namespace {

// A few hundred bytes each. When they are full, all are verified again.
constexpr size_t kMaxRemembered = 50'000;

}  // namespace

FinalVerifier::FinalVerifier(std::string fleet, std::function<std::vector<Certificate>()> roots,
                             const Clock& clock)
    : fleet_(std::move(fleet)), roots_(std::move(roots)), clock_(clock) {}

absl::Status FinalVerifier::Verify(const v1::JobRecord& final) {
  const std::string& chain = final.final().signature().certificate_chain_pem();
  const std::string digest = DigestBytes(Sha256::Of(chain));
  const std::vector<Certificate> roots = roots_();
  const absl::Time now = clock_.Now();
  std::optional<CertifiedNode> signer;
  {
    MutexLock lock(mutex_);
    if (roots != verified_with_) {
      signers_.clear();
      verified_with_ = roots;
    }
    const auto found = signers_.find(digest);
    if (found != signers_.end() && now < found->second.expires) signer = found->second;
  }
  if (signer) return VerifyFinalBy(*signer, fleet_, final);
  ASSIGN_OR_RETURN(signer, VerifyNodeChain(chain, fleet_, roots, now));
  {
    MutexLock lock(mutex_);
    if (signers_.size() >= kMaxRemembered) signers_.clear();
    if (roots == verified_with_) signers_.insert_or_assign(digest, *signer);
  }
  return VerifyFinalBy(*signer, fleet_, final);
}

size_t FinalVerifier::size() const {
  MutexLock lock(mutex_);
  return signers_.size();
}

}  // namespace muster
