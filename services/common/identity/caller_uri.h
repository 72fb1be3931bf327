// The names of a caller in records and quotas.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_CALLER_URI_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_CALLER_URI_H_

#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "services/common/identity/identity.h"
#include "services/common/identity/rpc_authorization.h"

namespace muster {

// Returns the URI, as records name a caller; empty without a certificate.
inline std::string UriOf(const Caller& caller) { return ToUri(caller.identity).value_or(""); }

// Returns the name under which the limits of an identity count what the caller holds: its URI, and
// the certificate for a URI that many clients share (all viewers of a run, all nodes of a plugin).
inline std::string HolderOf(const Caller& caller) {
  const std::string uri = UriOf(caller);
  const Identity::Name& name = caller.identity.name;
  if (!std::holds_alternative<RunViewerIdentity>(name) &&
      !std::holds_alternative<RunPluginIdentity>(name)) {
    return uri;
  }
  return caller.via ? absl::StrCat(uri, " ", caller.forwarded_certificate)
                    : absl::StrCat(uri, " ", caller.issuer, ":", caller.serial);
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_CALLER_URI_H_
