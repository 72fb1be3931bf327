// Resolves host names within a time limit.
#ifndef MUSTER_SERVICES_AGENT_PREFLIGHT_LOOKUP_H_
#define MUSTER_SERVICES_AGENT_PREFLIGHT_LOOKUP_H_

#include <netdb.h>

#include <memory>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster {

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

// Asks the system's resolver. Returns at least one address of a stream socket. Fails with NOT_FOUND
// and the resolver's reason, DEADLINE_EXCEEDED, or CANCELLED on `stop`.
absl::StatusOr<Addresses> LookUp(const std::string& host, uint16_t port, absl::Duration limit,
                                 const std::stop_token& stop);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_PREFLIGHT_LOOKUP_H_
