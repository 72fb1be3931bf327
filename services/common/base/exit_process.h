// The end of a program that uses gRPC.
#ifndef MUSTER_SERVICES_COMMON_BASE_EXIT_PROCESS_H_
#define MUSTER_SERVICES_COMMON_BASE_EXIT_PROCESS_H_

namespace muster {

// Writes what the standard streams have buffered, and ends the process with this exit code, without
// destroying static objects: gRPC 1.51 ends on a separate thread if the last of its objects was
// released by one of its threads (grpc_shutdown), and would use them meanwhile.
[[noreturn]] void ExitProcess(int code);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_EXIT_PROCESS_H_
