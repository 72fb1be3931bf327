#include "services/common/tunnel/tunnels.h"

#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/proxy.h"
#include "services/common/tunnel/tunnel_endpoint.h"
#include "services/common/tunnel/tunnel_status.h"

namespace muster {
namespace {

// No endpoint has this name: connections fail.
constexpr char kNoTunnel[] = "muster-tunnel-0";

struct Tunnels {
  Mutex mutex;
  std::string root ABSL_GUARDED_BY(mutex);
  std::map<std::pair<std::string, TunnelTo>, std::unique_ptr<TunnelEndpoint>> all
      ABSL_GUARDED_BY(mutex);
};

Tunnels& Process() {
  static auto* const tunnels = new Tunnels();  // used until the end of the process
  return *tunnels;
}

TunnelOptions OptionsOf(const HostPort& gateway, TunnelTo to, const std::string& root) {
  TunnelOptions options;
  options.gateway = gateway;
  options.path = to == TunnelTo::kJoin ? "/tunnel/join" : "/tunnel/relay";
  options.fleet_root_pem = root;
  const auto proxy = GrpcProxyOf(std::string(absl::StripPrefix(gateway.host, "wss://")));
  if (proxy) {
    options.proxy =
        TunnelProxy{proxy->proxy.host, proxy->proxy.port.empty() ? "443" : proxy->proxy.port,
                    proxy->credentials};
  }
  return options;
}

// Returns a target to which connections fail with this fault.
std::string NoTunnel(const std::string& address, const std::string& fault) {
  SetTunnelStatus(kNoTunnel, TunnelStatus{address, "", "", fault});
  return absl::StrCat("unix-abstract:", kNoTunnel);
}

}  // namespace

std::string TunnelTarget(const HostPort& gateway, TunnelTo to) {
  Tunnels& process = Process();
  MutexLock lock(process.mutex);
  const auto key = std::pair(gateway.ToString(), to);
  const auto found = process.all.find(key);
  if (found != process.all.end()) return found->second->target();
  if (process.all.size() >= kMaxTunnels) {
    return NoTunnel(key.first, absl::StrCat("this process has ", kMaxTunnels, " tunnels"));
  }
  auto endpoint = TunnelEndpoint::Start(OptionsOf(gateway, to, process.root));
  if (!endpoint.ok()) {
    return NoTunnel(key.first, std::string(endpoint.status().message()));
  }
  return process.all.emplace(key, *std::move(endpoint)).first->second->target();
}

void SetTunnelRoot(const std::string& fleet_root_pem) {
  Tunnels& process = Process();
  MutexLock lock(process.mutex);
  process.root = fleet_root_pem;
}

std::string DescribeTunnel(const HostPort& gateway) {
  Tunnels& process = Process();
  std::string target;
  {
    MutexLock lock(process.mutex);
    const auto found = process.all.find({gateway.ToString(), TunnelTo::kRelay});
    if (found == process.all.end()) return "";
    target = found->second->target();
  }
  const auto status = FindTunnelStatus(target);
  if (!status || status->trust.empty()) return "";
  return absl::StrCat("websocket ", status->address, " ", status->way, ", ", status->trust);
}

}  // namespace muster
