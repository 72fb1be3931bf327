// `muster agent attach`: the agent as a service.
#ifndef MUSTER_SERVICES_AGENT_ATTACH_RUN_ATTACHED_H_
#define MUSTER_SERVICES_AGENT_ATTACH_RUN_ATTACHED_H_

#include <string>

#include "absl/status/status.h"

namespace muster {

// Keeps the node of `folder` attached, runs what comes down, and renews its identity, until
// SIGTERM or SIGINT. Then commands get 10 s to end, and what became of them is told (3 s); a
// delivery that has begun goes on for up to a minute. Call it from main before other threads start.
//
// FAILED_PRECONDITION (NOT_JOINED) if no node joined into the folder, ABORTED (ALREADY_ATTACHED) if
// another process works with it; else the errors of IdentityKeeper::Open and JobRunner::Open.
absl::Status RunAttached(const std::string& folder);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_ATTACH_RUN_ATTACHED_H_
