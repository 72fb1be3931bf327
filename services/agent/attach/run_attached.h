// `muster agent attach`: the agent as a service.
#ifndef MUSTER_SERVICES_AGENT_ATTACH_RUN_ATTACHED_H_
#define MUSTER_SERVICES_AGENT_ATTACH_RUN_ATTACHED_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace muster {

struct AttachOptions {
  std::string folder;                // made by `muster node join`
  size_t parallel = 16;              // commands at the same time; more wait
  std::string docker_socket;         // of the daemon that runs containers
  std::string registry_credentials;  // a file; it need not exist
  // The limits of committed results that are kept (kept_results.h).
  int64_t max_kept_bytes = int64_t{1} << 30;
  absl::Duration max_kept_age = absl::Hours(24);
};

// Keeps the node of the folder attached, runs its jobs and renews its identity, until SIGTERM or
// SIGINT. Then commands have 10 s to end and 3 s to report, and a running delivery continues for up
// to a minute. Called from main before other threads start.
//
// FAILED_PRECONDITION (NOT_JOINED) if no node joined into the folder, ABORTED (ALREADY_ATTACHED) if
// another process uses it; the errors of IdentityKeeper::Open and JobRunner::Open.
absl::Status RunAttached(const AttachOptions& options);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_ATTACH_RUN_ATTACHED_H_
