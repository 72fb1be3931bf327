// The CAs of a fleet.
//
//   FleetRoot      signs only the intermediate; its key may be kept offline
//   Intermediate   signs services, users, nodes, and run CAs
//   RunAuthority   signs the credentials and the listener of one run
//
// The types here decide what each CA may sign. The certificate of a run CA also constrains it to
// its run (path length 0, a critical constraint on the host of the URI), so a stolen key is useless
// for other runs. Only the aggregator issues certificates.
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

// Every certificate is valid from this long before its creation, to tolerate slow clocks.
inline constexpr absl::Duration kBackdate = absl::Hours(1);

// The validity of the fleet's certificates. They are renewed at half of it (RenewAt).
inline constexpr absl::Duration kServiceValidity = absl::Hours(24 * 30);
inline constexpr absl::Duration kOperatorValidity = absl::Hours(24 * 365);

// Returns the time at which half of the validity since the creation has passed.
absl::Time RenewAt(const Certificate& certificate);

// Returns the end of a run's credentials: an hour after the run stops accepting results, to
// tolerate fast clocks and clients that wait for the last answer.
absl::Time RunCredentialsEnd(absl::Time deadline, absl::Duration seal_grace);

// Returns the end of the certificates that read a run's status: a day after its deadline, so that
// the outcome of a night is visible in the morning.
absl::Time RunViewersEnd(absl::Time deadline);

// Returns the end of a run CA: that of the last certificate that it signs.
absl::Time RunAuthorityEnd(absl::Time deadline, absl::Duration seal_grace);

// A run CA: one key, generated for this run, with two certificates that build the same chains.
// Immutable; thread-safe.
class RunAuthority {
 public:
  // Loads a stored run CA. Fails with FAILED_PRECONDITION (AUTHORITY_MISMATCH) if the parts do not
  // belong together or to this run.
  static absl::StatusOr<RunAuthority> Load(std::string_view fleet, std::string_view run,
                                           PrivateKey key, Certificate fleet_signed,
                                           Certificate self_signed);

  // Issues a certificate for `name` until `not_after`, or until the end of this CA if that is
  // earlier. `name` must belong to this run (PERMISSION_DENIED, ISSUER_MAY_NOT_SIGN). The name
  // determines the usage: credentials are clients, the listener is a server. `hosts`: DNS names and
  // IP addresses, only for the listener.
  absl::StatusOr<Certificate> Issue(const RunName& name, const PublicKey& key,
                                    const std::vector<std::string>& hosts, absl::Time now,
                                    absl::Time not_after = absl::InfiniteFuture()) const;

  const std::string& run() const { return run_; }
  const PrivateKey& key() const { return key_; }
  absl::Time NotAfter() const { return fleet_signed_.NotAfter(); }

  // The certificate signed by the fleet's intermediate. Chains to services contain it between leaf
  // and intermediate.
  const Certificate& fleet_signed() const { return fleet_signed_; }

  // The self-signed certificate: the only root that legacy clients and the listener of the run
  // trust.
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

// The CA that the aggregator holds. Immutable; thread-safe.
class Intermediate {
 public:
  // Fails with FAILED_PRECONDITION (AUTHORITY_MISMATCH) if the parts do not belong together.
  static absl::StatusOr<Intermediate> Load(std::string_view fleet, PrivateKey key,
                                           Certificate certificate, Certificate root);

  // Issues a certificate for a service, user or node of the fleet until `not_after`, or until the
  // end of this CA if that is earlier. Services are clients and servers, the others are clients.
  // `hosts`: DNS names and IP addresses, only for services.
  absl::StatusOr<Certificate> Issue(const FleetName& name, const PublicKey& key,
                                    const std::vector<std::string>& hosts, absl::Time now,
                                    absl::Time not_after) const;

  // Creates the CA of a new run, with a new key. `not_after`: see RunAuthorityEnd. Fails with
  // FAILED_PRECONDITION (AUTHORITY_ENDS_EARLIER) if this CA expires earlier.
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
  // Creates a self-signed root with `key`, valid for 20 years.
  static absl::StatusOr<FleetRoot> Create(std::string_view fleet, PrivateKey key, absl::Time now);

  // Fails with FAILED_PRECONDITION (AUTHORITY_MISMATCH) if the parts do not belong together.
  static absl::StatusOr<FleetRoot> Load(std::string_view fleet, PrivateKey key,
                                        Certificate certificate);

  // Issues the certificate of an intermediate for `key`, valid for 5 years.
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
