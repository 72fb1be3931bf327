// The metadata with which a service calls on behalf of its client.
#ifndef MUSTER_SERVICES_COMMON_RPC_FORWARDING_H_
#define MUSTER_SERVICES_COMMON_RPC_FORWARDING_H_

namespace muster {

// The verified URI of that client; once. From a gateway, or from a relay for a node.
inline constexpr char kForwardedIdentity[] = "muster-forwarded-identity";

// From a gateway, in addition, for a URI that many clients share: "<issuer key id>:<serial>" of the
// client's certificate.
inline constexpr char kForwardedCertificate[] = "muster-forwarded-certificate";

// From a relay, in addition: the serialised AttachStatement of that node.
inline constexpr char kAttachStatement[] = "muster-attach-statement-bin";

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_FORWARDING_H_
