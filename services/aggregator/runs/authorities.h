// Issuing: the aggregator alone signs certificates, and remembers each one.
#ifndef MUSTER_SERVICES_AGGREGATOR_RUNS_AUTHORITIES_H_
#define MUSTER_SERVICES_AGGREGATOR_RUNS_AUTHORITIES_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/identity/authority.h"
#include "services/common/identity/key_wrap.h"
#include "services/common/store/state_store.h"

namespace muster {

// How long an enrolled node's certificate is valid; it renews itself at half of it.
inline constexpr absl::Duration kNodeValidity = absl::Hours(1);
// And a relay's that joined: one out of contact is dropped within a day.
inline constexpr absl::Duration kRelayValidity = absl::Hours(24);

// The relay at the centre. It is no member of the register: the fleet's home made it.
inline constexpr std::string_view kRootRelay = "root";

struct SignedCertificate {
  std::string uri;
  std::string leaf_pem;
  std::string chain_pem;  // what goes after the leaf to reach the fleet's root
  absl::Time expires;
};

// Thread-safe. Its methods may wait for the disk.
class Authorities {
 public:
  Authorities(Intermediate intermediate, KeyWrap key_wrap, StateStore& store, const Clock& clock)
      : intermediate_(std::move(intermediate)),
        key_wrap_(std::move(key_wrap)),
        store_(store),
        clock_(clock) {}

  const std::string& fleet() const { return intermediate_.fleet(); }
  std::string FleetCaPem() const { return intermediate_.root().ToPem(); }
  const Certificate& root() const { return intermediate_.root(); }

  // A new authority for a new run, ready to be stored.
  absl::StatusOr<RunAuthorityRecord> NewRunAuthority(const std::string& run, absl::Time deadline,
                                                     absl::Duration seal_grace) const;

  // A certificate for `name` by the authority of its run, as long as such a name is good for.
  // `hosts` for the listener alone. RUN_ENDED if that authority is gone.
  absl::StatusOr<SignedCertificate> SignForRun(const RunName& name, const RunRecord& run,
                                               const std::string& csr_pem,
                                               const std::vector<std::string>& hosts,
                                               const std::string& asked_by);

  // A certificate for a service, an operator or a node of the fleet.
  absl::StatusOr<SignedCertificate> SignForFleet(const FleetName& name, const std::string& csr_pem,
                                                 const std::vector<std::string>& hosts,
                                                 absl::Duration validity,
                                                 const std::string& asked_by);

  // A certificate for an enrolled node, or a relay that joined, which names the hosts of its
  // addresses. NODE_NOT_ENROLLED, NODE_REVOKED.
  absl::StatusOr<SignedCertificate> SignForMember(const NodeRecord& member,
                                                  const std::string& csr_pem,
                                                  const std::string& asked_by);

  // One that nobody remembers yet: it must not be handed out before `record` is in the store.
  struct Unrecorded {
    SignedCertificate certificate;
    IssuedRecord record;
  };
  absl::StatusOr<Unrecorded> SignUnrecorded(const FleetName& name, const std::string& csr_pem,
                                            const std::vector<std::string>& hosts,
                                            absl::Duration validity,
                                            const std::string& asked_by) const;
  // Of `member` counts what it is called, whether it is a relay, and its addresses.
  absl::StatusOr<Unrecorded> SignMemberUnrecorded(const NodeRecord& member,
                                                  const std::string& csr_pem,
                                                  const std::string& asked_by) const;

  // The key of the run's own status listener as it rests in the store, and back.
  absl::StatusOr<std::string> WrapStatusKey(const Secret& pem, std::string_view run) const {
    return key_wrap_.WrapStatusKey(pem, run);
  }
  absl::StatusOr<Secret> UnwrapStatusKey(std::string_view wrapped, std::string_view run) const {
    return key_wrap_.UnwrapStatusKey(wrapped, run);
  }

  // Remembers a certificate that was signed with the fleet's intermediate before the aggregator
  // ran, unless it is known already: the first operator's. OK if there is no such file.
  absl::Status TakeOver(const std::string& certificate_file);

 private:
  absl::StatusOr<RunAuthority> LoadRunAuthority(const std::string& run) const;
  IssuedRecord RecordOf(const std::string& uri, const Certificate& certificate,
                        const std::string& asked_by) const;
  absl::Status Remember(IssuedRecord record);

  const Intermediate intermediate_;
  const KeyWrap key_wrap_;
  StateStore& store_;
  const Clock& clock_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_RUNS_AUTHORITIES_H_
