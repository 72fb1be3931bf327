// The relay, put together.
#ifndef MUSTER_SERVICES_RELAY_RELAY_SERVER_H_
#define MUSTER_SERVICES_RELAY_RELAY_SERVER_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/service/service_main.h"
#include "services/relay/config.h"

namespace muster {

class RelayServer : public RunningService {
 public:
  // Opens the state folder and serves. `fail` is called, by any thread, when the database of the
  // spool or of shared files has failed: only a restart recovers it. Errors: those of
  // RelayIdentity::Open and of the state folder, INTERNAL (LISTEN_FAILED).
  static absl::StatusOr<std::unique_ptr<RunningService>> Start(
      const RelayConfig& config, std::function<void(const absl::Status&)> fail);

  // Return the port of gRPC, and the port at which machines join; 0 without the latter.
  virtual int port() const = 0;
  virtual int join_port() const = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_RELAY_SERVER_H_
