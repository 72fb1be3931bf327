// The URI of a caller.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_CALLER_URI_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_CALLER_URI_H_

#include <string>

#include "services/common/identity/identity.h"
#include "services/common/identity/rpc_authorization.h"

namespace muster {

// Returns the URI, as records and quotas name a caller; empty without a certificate.
inline std::string UriOf(const Caller& caller) { return ToUri(caller.identity).value_or(""); }

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_CALLER_URI_H_
