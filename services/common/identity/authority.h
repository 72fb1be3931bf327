// The authorities of a fleet, and what each of them may sign.
//
//   FleetRoot      signs the intermediate, nothing else; its key may be kept offline
//   Intermediate   signs services, users, nodes, and the authorities of runs
//   RunAuthority   signs the credentials and the listener of its own run
//
// What an authority may sign is decided by the types here; a run's authority is also held to its
// run by its certificate (path length 0, a critical constraint on the URI's host), so that one who
// stole its key gets no further than that run. Only the aggregator issues.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_AUTHORITY_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_AUTHORITY_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/identity.h"
#include "services/common/identity/key.h"

namespace muster {

// Every certificate begins this much before it was issued, for clocks that are slow.
inline constexpr absl::Duration kBackdate = absl::Hours(1);

// How long certificates of the fleet are valid; renewed at half-life (RenewAt).
inline constexpr absl::Duration kServiceValidity = absl::Hours(24 * 30);
inline constexpr absl::Duration kOperatorValidity = absl::Hours(24 * 365);

// When the half of a certificate's life since it was issued is over.
absl::Time RenewAt(const Certificate& certificate);

// When a run's credentials end: an hour after the last moment at which the run takes results. A
// client whose clock is fast, or that waits for an answer at the very end, is not shut out.
absl::Time RunCredentialsEnd(absl::Time deadline, absl::Duration seal_grace);

// When the certificates of those who may see a run's status end: a day after its deadline, so that
// the outcome of a night is still shown in the morning.
absl::Time RunViewersEnd(absl::Time deadline);

// When a run's authority ends: with the last certificate that it signs.
absl::Time RunAuthorityEnd(absl::Time deadline, absl::Duration seal_grace);

// A run's own authority: one key, new for this run, with two certificates that build the same
// chains. Immutable; thread-safe.
class RunAuthority {
 public:
  // From what the aggregator stored. FAILED_PRECONDITION, reason AUTHORITY_MISMATCH, if the parts
  // do not belong together or to this run.
  static absl::StatusOr<RunAuthority> Load(std::string_view fleet, std::string_view run,
                                           PrivateKey key, Certificate fleet_signed,
                                           Certificate self_signed);

  // A certificate for `name`, which must be of this run (PERMISSION_DENIED, reason
  // ISSUER_MAY_NOT_SIGN), until `not_after`, or the end of this authority if that is earlier. Its
  // usage follows from the name: credentials are clients, the listener is a server. `hosts`: DNS
  // names and IP addresses, for the listener alone.
  absl::StatusOr<Certificate> Issue(const RunName& name, const PublicKey& key,
                                    const std::vector<std::string>& hosts, absl::Time now,
                                    absl::Time not_after = absl::InfiniteFuture()) const;

  const std::string& run() const { return run_; }
  const PrivateKey& key() const { return key_; }
  absl::Time NotAfter() const { return fleet_signed_.NotAfter(); }

  // Signed by the fleet's intermediate: goes between leaf and intermediate on the way to services.
  const Certificate& fleet_signed() const { return fleet_signed_; }

  // Self-signed: what old clients and the run's listener trust, and nothing else.
  const Certificate& self_signed() const { return self_signed_; }

 private:
  RunAuthority(std::string fleet, std::string run, PrivateKey key, Certificate fleet_signed,
               Certificate self_signed)
      : fleet_(std::move(fleet)),
        run_(std::move(run)),
        key_(std::move(key)),
        fleet_signed_(std::move(fleet_signed)),
        self_signed_(std::move(self_signed)) {}

  std::string fleet_;
  std::string run_;
  PrivateKey key_;
  Certificate fleet_signed_;
  Certificate self_signed_;
};

// The authority that the aggregator holds. Immutable; thread-safe.
class Intermediate {
 public:
  // FAILED_PRECONDITION, reason AUTHORITY_MISMATCH, if the parts do not belong together.
  static absl::StatusOr<Intermediate> Load(std::string_view fleet, PrivateKey key,
                                           Certificate certificate, Certificate root);

  // A certificate for a service, user or node of the fleet until `not_after`, or the end of this
  // authority if that is earlier. Services are clients and servers, the others clients. `hosts`:
  // DNS names and IP addresses, for services alone.
  absl::StatusOr<Certificate> Issue(const FleetName& name, const PublicKey& key,
                                    const std::vector<std::string>& hosts, absl::Time now,
                                    absl::Time not_after) const;

  // The authority of a new run, with a new key. `not_after`: see RunAuthorityEnd.
  // FAILED_PRECONDITION, reason AUTHORITY_ENDS_EARLIER, if this authority ends before.
  absl::StatusOr<RunAuthority> CreateRunAuthority(std::string_view run, absl::Time now,
                                                  absl::Time not_after) const;

  const std::string& fleet() const { return fleet_; }
  const Certificate& certificate() const { return certificate_; }
  const Certificate& root() const { return root_; }

 private:
  Intermediate(std::string fleet, PrivateKey key, Certificate certificate, Certificate root)
      : fleet_(std::move(fleet)),
        key_(std::move(key)),
        certificate_(std::move(certificate)),
        root_(std::move(root)) {}

  std::string fleet_;
  PrivateKey key_;
  Certificate certificate_;
  Certificate root_;
};

// The fleet's root. Immutable; thread-safe.
class FleetRoot {
 public:
  // A new self-signed root over `key`, valid for 20 years.
  static absl::StatusOr<FleetRoot> Create(std::string_view fleet, PrivateKey key, absl::Time now);

  // FAILED_PRECONDITION, reason AUTHORITY_MISMATCH, if the parts do not belong together.
  static absl::StatusOr<FleetRoot> Load(std::string_view fleet, PrivateKey key,
                                        Certificate certificate);

  // A certificate for the key of an intermediate, valid for 5 years.
  absl::StatusOr<Certificate> SignIntermediate(const PublicKey& key, absl::Time now) const;

  const std::string& fleet() const { return fleet_; }
  const Certificate& certificate() const { return certificate_; }

 private:
  FleetRoot(std::string fleet, PrivateKey key, Certificate certificate)
      : fleet_(std::move(fleet)), key_(std::move(key)), certificate_(std::move(certificate)) {}

  std::string fleet_;
  PrivateKey key_;
  Certificate certificate_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_AUTHORITY_H_
