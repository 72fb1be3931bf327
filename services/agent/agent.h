// `muster agent`: gathers or waits for one result, and delivers it.
#ifndef MUSTER_SERVICES_AGENT_AGENT_H_
#define MUSTER_SERVICES_AGENT_AGENT_H_

#include <string>

namespace muster {

struct AgentOptions {
  // A JSON file (docs/agent-config.schema.json); empty: the environment alone.
  std::string config_path;
};

// Runs to the end; the exit code is a client::Code (docs/agent.md lists them). Says on stderr what
// happened. Call it from main before other threads start: it waits for SIGTERM and SIGINT. Blocks.
int RunAgent(const AgentOptions& options);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_AGENT_H_
