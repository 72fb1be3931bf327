// The fleet's command authority: the key by whose word nodes obey a command. It stands apart from
// the fleet's root, so that neither a TLS certificate nor the root's key makes a node run anything:
// nodes pin it when they join.
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

// How long a signing certificate is valid.
inline constexpr absl::Duration kCommandValidity = absl::Hours(24);

// Immutable; thread-safe.
class CommandAuthority {
 public:
  // A self-signed authority over `key`, valid for 20 years.
  static absl::StatusOr<CommandAuthority> Create(std::string_view fleet, PrivateKey key,
                                                 absl::Time now);

  // FAILED_PRECONDITION, reason AUTHORITY_MISMATCH, if the parts do not belong together or to the
  // fleet.
  static absl::StatusOr<CommandAuthority> Load(std::string_view fleet, PrivateKey key,
                                               Certificate certificate);

  // From command-ca.key (0600) and command-ca.crt in `folder`, made there if this is the first
  // time. As Load, as pem_files.h, or FAILED_PRECONDITION (HOME_INCOMPLETE) if the key is lost: a
  // new one would not be obeyed by nodes that joined before.
  static absl::StatusOr<CommandAuthority> Ensure(const std::string& folder, std::string_view fleet,
                                                 absl::Time now);

  // A signing certificate of an operator or a gateway for kCommandValidity. PERMISSION_DENIED,
  // reason ISSUER_MAY_NOT_SIGN, for anybody else.
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
