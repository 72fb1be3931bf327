// `muster agent attach`: the agent as a service.
#ifndef MUSTER_SERVICES_AGENT_ATTACH_RUN_ATTACHED_H_
#define MUSTER_SERVICES_AGENT_ATTACH_RUN_ATTACHED_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"

namespace muster {

struct AttachOptions {
  std::string folder;    // that `muster node join` made
  size_t parallel = 16;  // commands at a time; more wait
};

// Keeps the node of the folder attached, runs what comes down, and renews its identity, until
// SIGTERM or SIGINT. Then commands get 10 s to end, and what became of them is told (3 s); a
// delivery that has begun goes on for up to a minute. Call it from main before other threads start.
//
// FAILED_PRECONDITION (NOT_JOINED) if no node joined into the folder, ABORTED (ALREADY_ATTACHED) if
// another process works with it; else the errors of IdentityKeeper::Open and JobRunner::Open.
absl::Status RunAttached(const AttachOptions& options);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_ATTACH_RUN_ATTACHED_H_
