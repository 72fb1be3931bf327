// Who is not trusted any more although the certificate still is valid.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_REVOCATION_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_REVOCATION_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "services/common/base/mutex.h"
#include "services/common/identity/policy.h"

namespace muster {

// The subject of a revoked certificate in the change feed and in the store:
// "<issuer key id>:<serial>", both lower-case hex. A revoked identity's subject is its URI.
std::string CertificateSubject(std::string_view issuer, std::string_view serial);

// The revoked identities and certificates, as the change feed tells them. Thread-safe; a question
// costs a few look-ups in memory.
class RevocationList {
 public:
  // Ends the subscription when it is destroyed. After that no call of it is under way.
  using Subscription = std::shared_ptr<void>;

  // From now on `subject` is refused.
  void Add(std::string_view subject);

  // The whole truth, from a snapshot.
  void Replace(std::set<std::string> subjects);

  // Whether the caller, the gateway or relay that speaks for it, the certificate of the connection,
  // or that with which a node behind a relay signed its statement is revoked.
  bool IsRevoked(const Caller& caller) const;

  // Whether this identity or certificate itself is.
  bool Contains(std::string_view subject) const;

  // Calls `changed` after each change that revoked something, on the thread that made it, so that
  // live streams can be ended. It must neither block nor subscribe or unsubscribe.
  Subscription Subscribe(std::function<void()> changed);

 private:
  // Outlives the list itself if a subscription does.
  struct Subscribers {
    Mutex mutex;
    uint64_t next ABSL_GUARDED_BY(mutex) = 0;
    std::map<uint64_t, std::function<void()>> callbacks ABSL_GUARDED_BY(mutex);
  };

  void Notify();

  mutable Mutex mutex_;
  std::set<std::string, std::less<>> subjects_ ABSL_GUARDED_BY(mutex_);
  const std::shared_ptr<Subscribers> subscribers_ = std::make_shared<Subscribers>();
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_REVOCATION_H_
