// What a server process sets before its first use of gRPC. Client libraries never do this: it
// changes the whole process.
#ifndef MUSTER_SERVICES_COMMON_RPC_PROCESS_H_
#define MUSTER_SERVICES_COMMON_RPC_PROCESS_H_

namespace muster {

// TLS 1.3 only for every listener of this process. gRPC 1.51 has no setting for it; with its cipher
// list reduced to a suite that needs a pre-shared key, no TLS 1.2 handshake can succeed, while the
// suites of TLS 1.3 are not touched by that list. Call it first in main.
void RequireTls13();

// Sends what gRPC itself logs to our log: its errors as information (a peer that fails a handshake
// is one), all else as debugging.
void RouteGrpcLog();

// Turns on the standard health service, reflection and (from the next server built on) channelz.
// The plaintext health server must be built between the first and the others: rpc/server.cc does.
void EnableInspectionPlugins();

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_PROCESS_H_
