// Revoked identities and certificates.
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
#include "services/common/identity/rpc_authorization.h"

namespace muster {

// Returns the subject of a revoked certificate in the change feed and in the store: "<issuer key
// id>:<serial>", both lower-case hex. The subject of a revoked identity is its URI.
std::string CertificateSubject(std::string_view issuer, std::string_view serial);

// The revoked identities and certificates of the change feed. Thread-safe; a query needs a few
// look-ups in memory.
class RevocationList {
 public:
  // Ends the subscription when it is destroyed. After that no callback runs.
  using Subscription = std::shared_ptr<void>;

  // Refuses `subject` from now on.
  void Add(std::string_view subject);

  // Replaces the list with the content of a snapshot.
  void Replace(std::set<std::string> subjects);

  // Returns true if the caller is revoked, the gateway or relay in `via`, the certificate of the
  // connection, or the certificate that signed a node's attach statement.
  bool IsRevoked(const Caller& caller) const;

  // Returns true if this identity or certificate itself is revoked.
  bool Contains(std::string_view subject) const;

  // Calls `changed` after each change that revoked something, on the thread that made the change,
  // so that open streams can be ended. `changed` must neither block nor subscribe or unsubscribe.
  Subscription Subscribe(std::function<void()> changed);

 private:
  // Outlives the list if a subscription does.
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
