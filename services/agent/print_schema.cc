// Prints docs/agent-config.schema.json.
#include <iostream>

#include "services/agent/agent_config.h"

int main() { std::cout << muster::AgentConfigSchema(); }
