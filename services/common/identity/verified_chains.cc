#include "services/common/identity/verified_chains.h"

#include <algorithm>
#include <utility>

#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"

namespace muster {
namespace {

// A few KiB each. When they are full, all are verified again.
constexpr size_t kMaxRemembered = 50'000;

}  // namespace

absl::StatusOr<VerifiedChain> VerifyClientChain(std::string_view chain_pem,
                                                std::span<const Certificate> roots,
                                                absl::Time now) {
  ASSIGN_OR_RETURN(const auto chain, ParseChain(chain_pem));
  const Certificate& leaf = chain.front();
  RETURN_IF_ERROR(VerifyChain(leaf, std::span(chain).subspan(1), roots, Usage::kClient, now));
  ASSIGN_OR_RETURN(auto uri, leaf.Uri());
  ASSIGN_OR_RETURN(auto key, leaf.Key());
  absl::Time expires = leaf.NotAfter();
  for (const Certificate& certificate : chain) expires = std::min(expires, certificate.NotAfter());
  return VerifiedChain{std::move(uri), std::move(key),  leaf.IssuerKeyId(),
                       leaf.Serial(),  leaf.NotAfter(), expires};
}

VerifiedChains::VerifiedChains(std::function<std::vector<Certificate>()> roots, const Clock& clock)
    : roots_(std::move(roots)), clock_(clock) {}

absl::StatusOr<std::shared_ptr<const VerifiedChain>> VerifiedChains::Verify(
    std::string_view chain_pem) {
  std::string digest = DigestBytes(Sha256::Of(chain_pem));
  std::vector<Certificate> roots = roots_();
  const absl::Time now = clock_.Now();
  {
    MutexLock lock(mutex_);
    if (roots != verified_with_) {
      Clear();
      verified_with_ = roots;
    }
    const auto found = chains_.find(digest);
    if (found != chains_.end() && now < found->second->expires) return found->second;
  }
  ASSIGN_OR_RETURN(auto chain, VerifyClientChain(chain_pem, roots, now));
  auto verified = std::make_shared<const VerifiedChain>(std::move(chain));
  MutexLock lock(mutex_);
  if (roots != verified_with_) return verified;  // they have changed meanwhile
  if (chains_.size() >= kMaxRemembered) Clear();
  std::string& remembered = digests_[{verified->issuer, verified->serial}];
  chains_.erase(remembered);
  remembered = digest;
  chains_.insert_or_assign(std::move(digest), verified);
  return verified;
}

void VerifiedChains::Clear() {
  chains_.clear();
  digests_.clear();
}

size_t VerifiedChains::size() const {
  MutexLock lock(mutex_);
  return chains_.size();
}

}  // namespace muster
