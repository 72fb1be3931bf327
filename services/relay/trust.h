// Whom this relay trusts: statements of those below it, who was revoked, and who may sign commands
// no more; and how what hangs below hears of it.
#ifndef MUSTER_SERVICES_RELAY_TRUST_H_
#define MUSTER_SERVICES_RELAY_TRUST_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/v1/attachment.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/identity/attach_statement.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/revocation.h"
#include "services/common/rpc/live_calls.h"
#include "services/relay/topology/topology.h"

namespace muster {

// Thread-safe.
class Trust {
 public:
  // What certificates have to lead to, as it is now; asked for each statement.
  using Roots = std::function<std::vector<Certificate>()>;

  Trust(std::string fleet, Roots roots, Topology& topology, LiveCalls& live, const Clock& clock);

  // OK and what it says, if it holds and its child is not revoked; STATEMENT_REFUSED,
  // IDENTITY_REVOKED.
  absl::StatusOr<VerifiedStatement> Verify(const v1::AttachStatement& statement) const;

  bool IsRevoked(const Caller& caller) const { return revocations_.IsRevoked(caller); }

  // From the feed, or from the parent: one more, or the whole truth. Ends streams, forgets nodes,
  // and tells child relays.
  void Revoke(const std::vector<std::string>& subjects);
  void Replace(std::set<std::string> subjects);
  void HandleRevoked(const v1::AttachResponse::Revoked& revoked);

  // A newer list replaces the one there is, and goes to every child; another is ignored.
  void UpdateCommandRevocations(const v1::CommandRevocations& list);
  int64_t commands_version() const;
  // Whether the list names this signer.
  bool IsRevokedSigner(const Identity& signer) const;

  // Who may sign commands no more, if the list is newer than what the child knows; the version that
  // it knows then.
  int64_t SendCommandRevocations(ChildLink& child, int64_t known) const;
  // What a child that was welcomed has to know.
  void SendRevocations(ChildLink& child, const v1::AttachRequest::Hello& hello) const;

 private:
  void Enforce(const std::vector<std::string>& fresh);
  std::vector<v1::AttachResponse> Messages(const std::set<std::string>& subjects, bool reset) const;

  const std::string fleet_;
  const Roots roots_;
  Topology& topology_;
  LiveCalls& live_;
  const Clock& clock_;
  RevocationList revocations_;
  mutable Mutex mutex_;
  std::set<std::string> subjects_ ABSL_GUARDED_BY(mutex_);
  v1::CommandRevocations commands_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_TRUST_H_
