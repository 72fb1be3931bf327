#include "services/common/service/service_host.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/free_memory.h"
#include "services/common/base/status_macros.h"
#include "services/common/rpc/stuck_readers.h"
#include "services/common/service/service_main.h"

namespace muster {
namespace {

std::string Loopback(int64_t port) { return absl::StrCat("127.0.0.1:", port); }

std::string AddressOf(const HostPort& listen, int port) {
  return HostPort{listen.host, static_cast<uint16_t>(port)}.ToString();
}

}  // namespace

ServiceHost::ServiceHost(const std::string& fleet, std::function<std::vector<Certificate>()> roots,
                         std::function<absl::Time()> expires, const Clock& clock,
                         TimerService& timers, Metrics& metrics)
    : clock_(clock),
      timers_(timers),
      metrics_(metrics),
      streams_(metrics),
      answer_memory_(metrics),
      rpc_metrics_(metrics),
      chains_(std::move(roots), clock),
      callers_(fleet, clock, &chains_) {
  metrics.AddProcessMetrics();
  metrics.AddSampledGauge("muster_certificate_expires_timestamp_seconds",
                          "Expiry of the service's certificate, in Unix time.",
                          [expires = std::move(expires)] {
                            return static_cast<double>(absl::ToUnixSeconds(expires()));
                          });
}

ServiceHost::~ServiceHost() = default;

RpcRuntime ServiceHost::Runtime(Executor& executor) {
  return {&callers_, &executor, &canceller_,      &rpc_metrics_,
          &timers_,  &streams_, &request_memory_, &answer_memory_};
}

absl::Status ServiceHost::Serve(Options options, const std::vector<grpc::Service*>& services) {
  RpcServerOptions server;
  server.listen = options.listen.ToString();
  server.health_listen = Loopback(options.health_port);
  server.certificate_folder = std::move(options.certificate_folder);
  server.is_revoked = std::move(options.is_revoked);
  server.check_caller = std::move(options.check_caller);
  server.max_message_bytes = options.max_message_bytes;
  server.memory_bytes = options.memory_bytes;
  if (options.join_service != nullptr) {
    server.open_listen = options.join_listen.ToString();
    server.open_service = options.join_service;
  }
  ASSIGN_OR_RETURN(
      server_, RpcServer::Start(std::move(server), callers_, canceller_, rpc_metrics_, services));
  InspectionServer::Options inspection;
  inspection.port = static_cast<uint16_t>(options.inspection_port);
  inspection.ready = [this, ready = std::move(options.ready)] {
    return stopping_ ? absl::UnavailableError("stopping") : ready();
  };
  ASSIGN_OR_RETURN(inspection_, InspectionServer::Start(metrics_, std::move(inspection)));
  std::map<std::string, std::string> addresses = {{options.name, AddressOf(options.listen, port())},
                                                  {"health", Loopback(health_port())},
                                                  {"inspection", Loopback(inspection_->port())}};
  if (options.join_service != nullptr) {
    addresses["join"] = AddressOf(options.join_listen, join_port());
  }
  return WriteAddresses(options.addresses_file, addresses);
}

void ServiceHost::Tick(absl::Duration stuck_limit) {
  DropStuckReaders(canceller_, clock_, stuck_limit);
  canceller_.CancelIf([now = clock_.Now()](const Caller& caller) { return caller.expires < now; });
  ReleaseFreeMemory();
}

void ServiceHost::StopServing(absl::Duration drain) {
  if (server_ != nullptr) server_->Stop(clock_.Now() + drain);
}

}  // namespace muster
