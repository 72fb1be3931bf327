// The HTTP proxy that the environment names.
#ifndef MUSTER_SERVICES_COMMON_RPC_PROXY_H_
#define MUSTER_SERVICES_COMMON_RPC_PROXY_H_

#include <optional>
#include <string>

namespace muster {

struct Proxy {
  std::string variable;  // "https_proxy"
  std::string host;
  std::string port;

  std::string Address() const { return host + ":" + port; }
};

// Returns the proxy of the first variable that has one: grpc_proxy, https_proxy, http_proxy,
// all_proxy, and the upper-case names that curl reads.
std::optional<Proxy> ProxyOfEnvironment();

// Lets gRPC use the proxies that curl uses. gRPC 1.51 reads lower-case names only, ignores a value
// without "http://", and cuts a port to 16 bits. Sets grpc_proxy and no_grpc_proxy, unless the user
// has set them. Call it first in main: it changes the environment.
//
// Returns an empty text, or what is wrong with the proxy: then gRPC uses none.
std::string ShareProxyWithGrpc();

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_PROXY_H_
