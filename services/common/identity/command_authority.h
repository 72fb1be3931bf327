// The fleet's command authority: the CA for certificates that sign commands. It is separate from
// the fleet's root, so neither a TLS certificate nor the root's key can make a node run a command.
// Nodes pin it when they join.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_COMMAND_AUTHORITY_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_COMMAND_AUTHORITY_H_

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/identity.h"
#include "services/common/identity/key.h"
#include "services/common/identity/signing_key.h"

namespace muster {

// The validity of a signing certificate.
inline constexpr absl::Duration kCommandValidity = absl::Hours(24);

// Immutable; thread-safe.
class CommandAuthority {
 public:
  // Creates a self-signed authority with `key`, valid for 20 years.
  static absl::StatusOr<CommandAuthority> Create(std::string_view fleet, PrivateKey key,
                                                 absl::Time now);

  // Fails with FAILED_PRECONDITION (AUTHORITY_MISMATCH) if the parts do not belong together or to
  // the fleet.
  static absl::StatusOr<CommandAuthority> Load(std::string_view fleet, PrivateKey key,
                                               Certificate certificate);

  // Loads command-ca.key (0600) and command-ca.crt from `folder`, or creates them the first time.
  // Fails as Load and pem_files.h do, or with FAILED_PRECONDITION (HOME_INCOMPLETE) if the key is
  // lost: nodes that joined before would reject the commands of a new one.
  static absl::StatusOr<CommandAuthority> Ensure(const std::string& folder, std::string_view fleet,
                                                 absl::Time now);

  // Issues a signing certificate for an operator or a gateway, valid for kCommandValidity. Fails
  // with PERMISSION_DENIED (ISSUER_MAY_NOT_SIGN) for other identities.
  absl::StatusOr<Certificate> Issue(const FleetName& name, const SigningPublicKey& key,
                                    absl::Time now) const;

  const std::string& fleet() const { return fleet_; }
  const PrivateKey& key() const { return key_; }
  const Certificate& certificate() const { return certificate_; }

 private:
  CommandAuthority(std::string fleet, PrivateKey key, Certificate certificate)
      : fleet_(std::move(fleet)), key_(std::move(key)), certificate_(std::move(certificate)) {}

  std::string fleet_;
  PrivateKey key_;
  Certificate certificate_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_COMMAND_AUTHORITY_H_
