// `muster agent`: gathers or waits for one result, and delivers it.
#ifndef MUSTER_SERVICES_AGENT_AGENT_H_
#define MUSTER_SERVICES_AGENT_AGENT_H_

#include <stop_token>
#include <string>

#include "services/agent/agent_config.h"
#include "services/client/client.h"

namespace muster {

struct AgentOptions {
  // A JSON file (docs/agent-config.schema.json); empty: the environment alone.
  std::string config_path;
};

// Runs to the end; the exit code is a client::Code (docs/agent.md lists them). Says on stderr what
// happened. Call it from main before other threads start: it waits for SIGTERM and SIGINT. Blocks.
int RunAgent(const AgentOptions& options);

// The same for a configuration that is at hand, in any thread; `stop` is what SIGTERM is there.
client::Delivery GatherAndDeliver(AgentConfig config, const std::stop_token& stop);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_AGENT_H_
