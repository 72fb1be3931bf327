// muster-aggregator: receives results, manages runs, builds archives.
#include "services/aggregator/aggregator.h"
#include "services/aggregator/config.h"
#include "services/common/service/service_main.h"

int main(int argc, char** argv) {
  muster::AggregatorConfig config;
  muster::ServiceProgram program;
  program.name = "muster-aggregator";
  program.summary = "Receives results, manages runs and identities, and builds archives";
  program.bind = [&](muster::Config* file) { muster::BindAggregatorConfig(&config, file); };
  program.log = &config.log;
  program.start = [&](std::function<void(const absl::Status&)> fail) {
    return muster::Aggregator::Start(config, std::move(fail));
  };
  return muster::ServiceMain(argc, argv, program);
}
