// Issues and records certificates. Only the aggregator signs certificates.
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
#include "services/common/identity/recorded_operators.h"
#include "services/common/store/state_store.h"

namespace muster {

// The validity of an enrolled node's certificate, which is renewed at half of it.
inline constexpr absl::Duration kNodeValidity = absl::Hours(1);
// The validity of a joined relay's certificate: a relay out of contact loses its identity within a
// day.
inline constexpr absl::Duration kRelayValidity = absl::Hours(24);

struct SignedCertificate {
  std::string uri;
  std::string leaf_pem;
  std::string chain_pem;  // the certificates between the leaf and the fleet's root
  absl::Time expires;
};

// Thread-safe. Its methods may wait for the disk.
class Authorities {
 public:
  Authorities(Intermediate intermediate, KeyWrap key_wrap, StateStore& store, const Clock& clock)
      : intermediate_(std::move(intermediate)),
        key_wrap_(std::move(key_wrap)),
        store_(store),
        clock_(clock),
        operators_(intermediate_.fleet(), clock) {}

  const std::string& fleet() const { return intermediate_.fleet(); }
  std::string FleetCaPem() const { return intermediate_.root().ToPem(); }
  const Certificate& root() const { return intermediate_.root(); }

  // Creates a CA for a new run.
  absl::StatusOr<RunAuthorityRecord> NewRunAuthority(const std::string& run, absl::Time deadline,
                                                     absl::Duration seal_grace) const;

  // Issues a certificate for `name` by the CA of its run, with the validity for such names. `hosts`
  // only for the listener. Fails with RUN_ENDED if the CA was deleted.
  absl::StatusOr<SignedCertificate> SignForRun(const RunName& name, const RunRecord& run,
                                               const std::string& csr_pem,
                                               const std::vector<std::string>& hosts,
                                               const Actor& asked_by);

  // Issues a certificate for a service, an operator or a node of the fleet. `renewed`: the subject
  // of the certificate that this one renews (CertificateSubject); empty: it renews none. Fails with
  // CERTIFICATE_REVOKED or RENEWAL_LIMIT.
  absl::StatusOr<SignedCertificate> SignForFleet(const FleetName& name, const std::string& csr_pem,
                                                 const std::vector<std::string>& hosts,
                                                 absl::Duration validity,
                                                 const std::string& asked_by,
                                                 const std::string& renewed = "");

  // Renews the certificate of an enrolled node or a joined relay; the new one names the hosts of
  // its addresses. Fails with NODE_NOT_ENROLLED, NODE_REVOKED or RENEWAL_LIMIT.
  absl::StatusOr<SignedCertificate> SignForMember(const NodeRecord& member,
                                                  const std::string& csr_pem,
                                                  const std::string& asked_by,
                                                  const std::string& renewed);

  // A certificate that must not be handed out before `record` is in the store.
  struct Unrecorded {
    SignedCertificate certificate;
    IssuedRecord record;
  };
  absl::StatusOr<Unrecorded> SignUnrecorded(const FleetName& name, const std::string& csr_pem,
                                            const std::vector<std::string>& hosts,
                                            absl::Duration validity,
                                            const std::string& asked_by) const;
  // Uses only the name, the kind and the addresses of `member`.
  absl::StatusOr<Unrecorded> SignMemberUnrecorded(const NodeRecord& member,
                                                  const std::string& csr_pem,
                                                  const std::string& asked_by) const;

  // Encrypt and decrypt the key of a run's separate status listener.
  absl::StatusOr<std::string> WrapStatusKey(const Secret& pem, std::string_view run) const {
    return key_wrap_.WrapStatusKey(pem, run);
  }
  absl::StatusOr<Secret> UnwrapStatusKey(std::string_view wrapped, std::string_view run) const {
    return key_wrap_.UnwrapStatusKey(wrapped, run);
  }

  // Reads the operators with a recorded certificate. Called before the first call of a client.
  absl::Status LoadOperators();
  const RecordedOperators& operators() const { return operators_; }

  // Records the first operator's certificate, which was signed before the aggregator ran, unless it
  // is already recorded or the operator is revoked. Succeeds if the file does not exist.
  absl::Status ImportOperator(const std::string& certificate_file);

 private:
  absl::StatusOr<RunAuthority> LoadRunAuthority(const std::string& run) const;
  IssuedRecord RecordOf(const std::string& uri, const Certificate& certificate,
                        const std::string& asked_by) const;
  absl::Status Record(IssuedRecord record, std::string renewed = "", std::string vouched_by = "");

  const Intermediate intermediate_;
  const KeyWrap key_wrap_;
  StateStore& store_;
  const Clock& clock_;
  RecordedOperators operators_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_RUNS_AUTHORITIES_H_
