// How a Muster program connects to a Muster service.
#ifndef MUSTER_SERVICES_COMMON_RPC_CHANNEL_H_
#define MUSTER_SERVICES_COMMON_RPC_CHANNEL_H_

#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "services/common/base/text_values.h"
#include "services/common/identity/identity.h"

namespace muster {

// The identity of this program and the trusted root CA. PEM texts; the chain begins with the leaf.
struct ChannelIdentity {
  std::string fleet;         // the trust domain of the server's URI
  std::string fleet_ca_pem;  // the fleet's root
  std::string certificate_chain_pem;
  std::string private_key_pem;
  std::string relay;  // the name of the only relay that is accepted; empty: each relay
};

// The same from a folder that holds key.pem, cert.pem and ca.pem and that is replaced as a whole
// (identity/certificate_files.h): new connections use new files within a second.
struct ChannelIdentityFolder {
  std::string fleet;
  std::string folder;
};

// TLS 1.3 credentials. A server is accepted if its certificate leads to the fleet's root and its
// URI is that of a service in one of `roles`; its host name does not matter, so that a service may
// move and be reached by any address.
std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(const ChannelIdentity& identity,
                                                                 std::vector<ServiceRole> roles);
std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(
    const ChannelIdentityFolder& identity, std::vector<ServiceRole> roles);

// The same for a machine without an identity yet, on a listener without client certificates.
std::shared_ptr<grpc::ChannelCredentials> MakeOpenChannelCredentials(
    const std::string& fleet, const std::string& fleet_ca_pem, std::vector<ServiceRole> roles);

// Returns a channel to the first of `targets` that answers (channel_target.h). Tunnels are used
// only if all targets are tunnels. With several names
// this blocks until they are resolved, once: a process that lives long uses service_channel.h.
// Keepalive finds dead paths in under a minute; connection attempts back off up to 10 s, and
// proceed between calls (channel_driver.h); messages are bounded to what this API sends.
// `own_connection`: do not share a connection with other channels to the same target, for parallel
// bulk transfers. A client that repeats calls with a back-off uses a RenewedChannel.
std::shared_ptr<grpc::Channel> MakeChannel(absl::Span<const HostPort> targets,
                                           const std::shared_ptr<grpc::ChannelCredentials>& creds,
                                           bool own_connection = false);

// The same for a target in gRPC's form, as ChannelTarget returns it.
std::shared_ptr<grpc::Channel> MakeResolvedChannel(
    const std::string& target, const std::shared_ptr<grpc::ChannelCredentials>& creds,
    bool own_connection = false);

// The same to a listener for machines without a certificate: "host:port", or "wss://host:port" for
// the tunnel of a gateway to it.
std::shared_ptr<grpc::Channel> MakeJoinChannel(
    const std::string& target, const std::shared_ptr<grpc::ChannelCredentials>& creds);

// The same for one target, "host:port", or "wss://host:port" for the tunnel of a gateway to the
// root relay.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& target,
                                           const std::shared_ptr<grpc::ChannelCredentials>& creds,
                                           bool own_connection = false);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_CHANNEL_H_
