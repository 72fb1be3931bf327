// The listeners of a service, and what its handlers share.
#ifndef MUSTER_SERVICES_COMMON_SERVICE_SERVICE_HOST_H_
#define MUSTER_SERVICES_COMMON_SERVICE_SERVICE_HOST_H_

#include <grpcpp/impl/service_type.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/base/inspection_server.h"
#include "services/common/base/metrics.h"
#include "services/common/base/text_values.h"
#include "services/common/base/timers.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/verified_chains.h"
#include "services/common/rpc/answer_memory.h"
#include "services/common/rpc/call.h"
#include "services/common/rpc/call_canceller.h"
#include "services/common/rpc/caller.h"
#include "services/common/rpc/open_streams.h"
#include "services/common/rpc/request_memory.h"
#include "services/common/rpc/rpc_metrics.h"
#include "services/common/rpc/server.h"

namespace muster {

// The calls of a service from the first to the last: the gRPC server, its health port, and the
// server for inspection. The main object of a service owns it as a member before the handlers, and
// calls BeginStop, StopServing and StopInspection before it destroys them. Thread-safe, but for
// these and Serve.
class ServiceHost {
 public:
  struct Options {
    std::string name;  // the key of the main listener in the file of addresses
    HostPort listen;
    int64_t health_port = 0;
    int64_t inspection_port = 0;
    std::string addresses_file;  // empty: none is written
    std::string certificate_folder;
    std::function<bool(const Caller&)> is_revoked;
    std::function<absl::Status(const Caller&)> check_caller;  // as in RpcServerOptions
    // Returns OK once the service is ready. Must not block.
    std::function<absl::Status()> ready = [] { return absl::OkStatus(); };
    // A listener for peers without a certificate, with this service alone. Null: there is none.
    HostPort join_listen;
    grpc::Service* join_service = nullptr;
    int max_message_bytes = kMaxMessageBytes;
    size_t memory_bytes = kServerMemoryBytes;
  };

  // `roots`: see VerifiedChains. `expires` returns the expiry of the service's certificate, which
  // becomes a metric, as those of the process do. The references outlive this object.
  ServiceHost(const std::string& fleet, std::function<std::vector<Certificate>()> roots,
              std::function<absl::Time()> expires, const Clock& clock, TimerService& timers,
              Metrics& metrics);
  ~ServiceHost();

  // Returns the objects that handlers on `executor` share.
  RpcRuntime Runtime(Executor& executor);

  VerifiedChains& chains() { return chains_; }
  CallCanceller& canceller() { return canceller_; }
  OpenStreams& streams() { return streams_; }

  // Starts all listeners and writes the file of addresses. `services` outlive StopServing.
  absl::Status Serve(Options options, const std::vector<grpc::Service*>& services);

  // Before Serve has succeeded there are no ports.
  int port() const { return server_->port(); }
  int health_port() const { return server_->health_port(); }
  int join_port() const { return server_->open_port(); }

  // To be called every few seconds. Cancels every call whose peer has not taken a message for
  // `stuck_limit`, or whose certificate has expired. Returns free memory to the system.
  void Tick(absl::Duration stuck_limit);

  // From now on the service is not ready. Returns false after the first call.
  bool BeginStop() { return !stopping_.exchange(true); }

  // Accepts no new calls, waits for those in progress for at most `drain`, and cancels the rest.
  void StopServing(absl::Duration drain);

  // Ends the inspection. No gauge is read after it. Before it the objects whose state they show
  // must not be destroyed.
  void StopInspection() { inspection_.reset(); }

 private:
  const Clock& clock_;
  TimerService& timers_;
  Metrics& metrics_;
  OpenStreams streams_;
  RequestMemory request_memory_;
  AnswerMemory answer_memory_;
  RpcMetrics rpc_metrics_;
  VerifiedChains chains_;
  CallerResolver callers_;
  CallCanceller canceller_;
  std::atomic<bool> stopping_ = false;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<InspectionServer> inspection_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_SERVICE_SERVICE_HOST_H_
