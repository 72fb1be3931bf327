// `muster agent`: gathers or waits for one result, and delivers it.
#ifndef MUSTER_SERVICES_AGENT_AGENT_H_
#define MUSTER_SERVICES_AGENT_AGENT_H_

#include <stop_token>
#include <string>

#include "services/agent/agent_config.h"
#include "services/client/client.h"

namespace muster {

struct AgentOptions {
  // A JSON file (docs/agent-config.schema.json); empty: only the environment.
  std::string config_path;
};

// Runs to the end and returns the exit code, a client::Code (docs/agent.md lists them). Prints the
// outcome on stderr. Call it from main before other threads start: it waits for SIGTERM and SIGINT.
// Blocks.
int RunAgent(const AgentOptions& options);

// Does the same for a given configuration, on any thread; `stop` replaces SIGTERM.
client::Delivery GatherAndDeliver(AgentConfig config, const std::stop_token& stop);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_AGENT_H_
