// The settings of a server process before its first use of gRPC. Client libraries never do this: it
// changes the whole process.
#ifndef MUSTER_SERVICES_COMMON_RPC_PROCESS_H_
#define MUSTER_SERVICES_COMMON_RPC_PROCESS_H_

#include <functional>
#include <memory>
#include <string_view>

namespace muster {

// TLS 1.3 only for every listener of this process. gRPC 1.51 has no setting for it; with its cipher
// list reduced to a suite that needs a pre-shared key, no TLS 1.2 handshake can succeed, while the
// suites of TLS 1.3 are not touched by that list. Call it first in main.
void RequireTls13();

// Writes the log lines of gRPC and protobuf to our log: errors of gRPC as information (a failed
// handshake of a peer is one), all others as debugging.
void RouteGrpcLog();

// Returns why a TLS handshake failed, by a line of gRPC's log: "bad_certificate" (expired, of
// another fleet, outside of what its issuer may sign), "no_certificate", "below_tls13",
// "plaintext", "refused_by_peer" or "other". Empty if the line reports no handshake.
std::string_view HandshakeFailure(std::string_view line);

// Calls `observer` with the reason of each handshake that fails in this process, until the handle
// is destroyed. gRPC 1.51 reports them only in its log, so this needs RouteGrpcLog. Thread-safe;
// `observer` is called on gRPC's threads, one at a time.
using HandshakeObserver = std::function<void(std::string_view reason)>;
[[nodiscard]] std::shared_ptr<void> ObserveFailedHandshakes(HandshakeObserver observer);

// Turns on the standard health service, reflection and (from the next server built on) channelz.
// The plaintext health server must be built between the first and the others: rpc/server.cc does.
void EnableInspectionPlugins();

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_PROCESS_H_
