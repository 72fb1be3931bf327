// Keeps gRPC's listeners alive while the process has no free file descriptor.
#ifndef MUSTER_SERVICES_COMMON_RPC_ACCEPT_GUARD_H_
#define MUSTER_SERVICES_COMMON_RPC_ACCEPT_GUARD_H_

#include <cstddef>

namespace muster {

// gRPC 1.51 stops listening for good when accept4 fails with an error that it does not expect, such
// as EMFILE. So this unit replaces accept4 for the whole process: if there is no free file
// descriptor it closes the connection by means of a descriptor that it keeps in reserve, and lets
// the caller try again. The same after any other error that concerns one connection or passes.
//
// Reserves the descriptor. Call it before the first server is built; thread-safe.
void GuardAccept();

// Returns how many connections were closed for want of a descriptor since the previous call.
size_t DrainUnacceptedConnections();

// Returns how many file descriptors the process may have.
size_t FileDescriptorLimit();

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_ACCEPT_GUARD_H_
