#include "services/common/identity/revocation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/strings.h"

namespace muster {

std::string CertificateSubject(std::string_view issuer, std::string_view serial) {
  return absl::StrCat(ToAbsl(issuer), ":", ToAbsl(serial));
}

void RevocationList::Add(std::string_view subject) {
  {
    const MutexLock lock(mutex_);
    if (!subjects_.emplace(subject).second) return;
  }
  Notify();
}

void RevocationList::Replace(std::set<std::string> subjects) {
  bool revoked = false;
  {
    const MutexLock lock(mutex_);
    revoked = !std::includes(subjects_.begin(), subjects_.end(), subjects.begin(), subjects.end());
    subjects_.clear();
    subjects_.merge(std::move(subjects));
  }
  if (revoked) Notify();
}

bool RevocationList::Contains(std::string_view subject) const {
  const MutexLock lock(mutex_);
  return subjects_.contains(subject);
}

bool RevocationList::IsRevoked(const Caller& caller) const {
  const auto revoked = [this](const Identity& identity) {
    const auto uri = ToUri(identity);
    return !uri.ok() || Contains(*uri);  // refuses an identity without a URI
  };
  {
    const MutexLock lock(mutex_);
    if (subjects_.empty()) return false;
  }
  return Contains(CertificateSubject(caller.issuer, caller.serial)) ||
         Contains(CertificateSubject(caller.statement_issuer, caller.statement_serial)) ||
         revoked(caller.identity) || (caller.via && revoked(*caller.via));
}

RevocationList::Subscription RevocationList::Subscribe(std::function<void()> changed) {
  const MutexLock lock(subscribers_->mutex);
  const uint64_t id = subscribers_->next++;
  subscribers_->callbacks.emplace(id, std::move(changed));
  return Subscription(nullptr, [subscribers = subscribers_, id](void*) {
    const MutexLock erasing(subscribers->mutex);
    subscribers->callbacks.erase(id);
  });
}

void RevocationList::Notify() {
  const MutexLock lock(subscribers_->mutex);
  for (const auto& [id, changed] : subscribers_->callbacks) changed();
}

}  // namespace muster
