// Addresses of a host, with a limit of time.
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

// Asks the system's resolver: at least one address of a stream socket. NOT_FOUND with its reason,
// DEADLINE_EXCEEDED, CANCELLED on `stop`.
absl::StatusOr<Addresses> LookUp(const std::string& host, uint16_t port, absl::Duration limit,
                                 const std::stop_token& stop);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_PREFLIGHT_LOOKUP_H_
