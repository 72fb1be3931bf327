// muster-status: what every plugin on every node is doing.
#include "services/common/service/service_main.h"
#include "services/status/config.h"
#include "services/status/status_server.h"

int main(int argc, char** argv) {
  muster::StatusConfig config;
  muster::ServiceProgram program;
  program.name = "muster-status";
  program.summary = "Receives heartbeats and reports the status of runs and nodes";
  program.bind = [&](muster::Config* file) { muster::BindStatusConfig(&config, file); };
  program.log = &config.log;
  program.start = [&](const std::function<void(const absl::Status&)>&) {
    return muster::StatusServer::Start(config);
  };
  return muster::ServiceMain(argc, argv, program);
}
