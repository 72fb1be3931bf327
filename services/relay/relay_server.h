// The relay, put together.
#ifndef MUSTER_SERVICES_RELAY_RELAY_SERVER_H_
#define MUSTER_SERVICES_RELAY_RELAY_SERVER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "services/common/service/service_main.h"
#include "services/relay/config.h"

namespace muster {

class RelayServer : public RunningService {
 public:
  // As RelayIdentity::Open; INTERNAL (LISTEN_FAILED); what is wrong with the state folder.
  static absl::StatusOr<std::unique_ptr<RunningService>> Start(const RelayConfig& config);

  // Where gRPC is served.
  virtual int port() const = 0;
  // Where machines join; 0 if they do not here.
  virtual int join_port() const = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_RELAY_SERVER_H_
