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

// Return the proxy of gRPC's connections, and that of curl's HTTPS requests.
std::optional<Proxy> GrpcProxy();
std::optional<Proxy> CurlProxy();

// A proxy for one host.
struct ProxyOfHost {
  Proxy proxy;
  std::string credentials;  // "user:password"; empty if it wants none. A secret
};

// Returns the proxy by which gRPC connects to `host`, unless no_grpc_proxy or no_proxy exempts it.
std::optional<ProxyOfHost> GrpcProxyOf(const std::string& host);

// Lets gRPC and curl use one proxy, that of the first variable that is set: https_proxy,
// HTTPS_PROXY, all_proxy, ALL_PROXY, http_proxy. An empty value means no proxy, and grpc_proxy
// overrides it for gRPC. The value is http://[USER:PASSWORD@]HOST:PORT, with or without http://.
// Never uses a proxy for this machine, unless no_proxy is set and empty. gRPC 1.51 alone reads
// fewer variables, ignores a value without http://, and does not trim the entries of no_proxy.
//
// Call it first in main: it changes the environment. Returns an empty text, or why there is no
// proxy although https_proxy or grpc_proxy names one; other variables with another scheme are
// ignored.
std::string UseOneProxy();

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_PROXY_H_
