// Parses any text as a policy, and asks one that is accepted about commands. A permitted command
// begins with an absolute path, and is not longer than the request and its rule.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "services/agent/jobs/node_policy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto policy =
      muster::NodePolicy::Parse({reinterpret_cast<const char*>(data), size}, "policy.yaml");
  if (!policy.ok()) return 0;
  const muster::CommandRequest requests[] = {
      {.action = "exec", .signer = "alice", .argv = {"/usr/bin/uptime", "-p"}},
      {.action = "exec", .signer = "alice", .argv = {"/usr/bin/../uptime"}},
      {.action = "exec", .signer = "alice", .argv = {"uptime"}},
      {.action = "rudder", .signer = "gateway/g", .classes = {"a_1"}},
      {.action = "container", .signer = "alice", .argv = {"sh"}, .image = "a@sha256:b"},
      {.action = "deployment", .signer = "alice", .image = "a@sha256:b"},
  };
  for (const muster::CommandRequest& request : requests) {
    const auto rule = policy->Allow(request);
    if (!rule.ok()) continue;
    if (!request.image.empty()) {
      if (rule->argv != request.argv || rule->container.memory <= 0) std::abort();
      continue;
    }
    if (rule->argv.empty() || rule->argv[0].empty() || rule->argv[0][0] != '/') std::abort();
    if (request.action == "exec" && rule->argv != request.argv) std::abort();
    if (&request == &requests[1]) std::abort();
  }
  (void)policy->AllowModule("hostfacts");
  return 0;
}
