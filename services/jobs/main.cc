// muster-jobs: template types, templates and deployments.
#include "services/common/service/service_main.h"
#include "services/jobs/config.h"
#include "services/jobs/jobs_server.h"

int main(int argc, char** argv) {
  muster::JobsServiceConfig config;
  muster::ServiceProgram program;
  program.name = "muster-jobs";
  program.summary = "Stores templates and deployments, and submits deployments to the root relay";
  program.bind = [&](muster::Config* file) { muster::BindJobsServiceConfig(&config, file); };
  program.log = &config.log;
  program.start = [&](std::function<void(const absl::Status&)> fail) {
    return muster::JobsServer::Start(config, std::move(fail));
  };
  return muster::ServiceMain(argc, argv, program);
}
