// Revocations and attach statements at a relay.
#ifndef MUSTER_SERVICES_RELAY_TRUST_H_
#define MUSTER_SERVICES_RELAY_TRUST_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/attachment.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/identity/attach_statement.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/revocation.h"
#include "services/common/rpc/call_canceller.h"
#include "services/relay/topology/topology.h"

namespace muster {

// The limits of the names that a parent revokes: a lying one must not fill the memory of its
// children.
inline constexpr size_t kMaxRevokedBytes = 128 << 20;  // two copies, with 64 bytes for each; a new
                                                       // list takes half as much until it is whole
inline constexpr size_t kMaxSubjectBytes = 512;        // of one name

// Thread-safe.
class Trust {
 public:
  // Returns the present root CAs.
  using Roots = std::function<std::vector<Certificate>()>;

  // The names that a parent revokes take at most `max_revoked` bytes.
  Trust(std::string fleet, Roots roots, Topology& topology, CallCanceller& canceller,
        const Clock& clock, size_t max_revoked = kMaxRevokedBytes);

  // Verifies a statement and that its child is not revoked. STATEMENT_REFUSED, IDENTITY_REVOKED.
  absl::StatusOr<VerifiedStatement> Verify(const v1::AttachStatement& statement) const;
  // The same for a statement that may have expired.
  absl::StatusOr<VerifiedStatement> VerifyPast(const v1::AttachStatement& statement) const;

  bool IsRevoked(const Caller& caller) const { return revocations_.IsRevoked(caller); }

  // Add revoked subjects, or replace all of them; from the feed. End their streams, remove them
  // from the topology, and inform the child relays.
  void Revoke(const std::vector<std::string>& subjects);
  void Replace(std::set<std::string> subjects);
  // The same for those that a parent sent; a full list replaces the names once its last message was
  // received. RELAY_REFUSED if they exceed the limits above.
  absl::Status HandleRevoked(const v1::AttachResponse::Revoked& revoked);
  // Drops a list of which the last message was not received. To be called when a stream of a parent
  // begins: a message of the new stream would otherwise complete the list of the former one.
  void DropPartialList();

  // Replaces the list by a newer one, and sends it to every child. Ignores an older list.
  void UpdateCommandRevocations(const v1::CommandRevocations& list);
  // The same for the list that a parent sent. RELAY_REFUSED if it is newer and the command
  // authority did not sign it.
  absl::Status HandleCommandRevocations(const v1::CommandRevocations& list,
                                        const Certificate& command_ca);
  int64_t commands_version() const;
  // Returns whether the list contains this signer.
  bool IsRevokedSigner(const Identity& signer) const;

  // Sends the list if it is newer than the child's version; returns the version that the child has
  // then.
  int64_t SendCommandRevocations(ChildLink& child, int64_t known) const;
  // Sends all revocations to a child that was welcomed.
  void SendRevocations(ChildLink& child, const v1::AttachRequest::Hello& hello) const;

 private:
  void Enforce(const std::vector<std::string>& fresh);
  void SendAll(ChildLink& child) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::StatusOr<VerifiedStatement> VerifyAt(const v1::AttachStatement& statement,
                                             absl::Time when) const;

  const std::string fleet_;
  const Roots roots_;
  Topology& topology_;
  CallCanceller& canceller_;
  const Clock& clock_;
  const size_t max_revoked_;
  RevocationList revocations_;
  mutable Mutex mutex_;
  std::set<std::string> subjects_ ABSL_GUARDED_BY(mutex_);
  size_t subjects_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // A list of the parent that is not whole yet.
  std::optional<std::set<std::string>> list_ ABSL_GUARDED_BY(mutex_);
  size_t list_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  v1::CommandRevocations commands_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_TRUST_H_
