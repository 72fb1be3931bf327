// muster-relay: the service to which nodes without inbound connections attach.
#include "services/common/service/service_main.h"
#include "services/relay/config.h"
#include "services/relay/relay_server.h"

int main(int argc, char** argv) {
  muster::RelayConfig config;
  muster::ServiceProgram program;
  program.name = "muster-relay";
  program.summary =
      "Connects nodes: forwards results and heartbeats, and runs jobs on attached nodes";
  program.bind = [&](muster::Config* file) { muster::BindRelayConfig(&config, file); };
  program.log = &config.log;
  program.start = [&](std::function<void(const absl::Status&)> fail) {
    return muster::RelayServer::Start(config, std::move(fail));
  };
  return muster::ServiceMain(argc, argv, program);
}
