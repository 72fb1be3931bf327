// Describes failed connections without the words of the libraries.
#ifndef MUSTER_SERVICES_COMMON_RPC_CONNECTION_ERROR_H_
#define MUSTER_SERVICES_COMMON_RPC_CONNECTION_ERROR_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace muster {

// Returns the error of a failed or lost connection in plain words, by gRPC's message: "cannot
// connect to 10.0.0.5:7440: Connection refused", which is UNREACHABLE, or PROXY_FAILED if the
// address is that of a proxy; SERVER_CERTIFICATE_REFUSED if the server was not accepted,
// HTTP2_REFUSED if it does not speak HTTP/2, TUNNEL_FAILED for a tunnel. A message
// of another kind is kept.
absl::Status ConnectionErrorOf(const std::string& message);

// Returns true for an error of ConnectionErrorOf if no connection was established, so that nothing
// was sent.
bool IsUnconnected(const absl::Status& status);

// Returns true for the reasons of a connection that was not established or was lost.
bool IsConnectionError(std::string_view reason);

// Returns true for an error of ConnectionErrorOf that a proxy in the way may have caused, so that a
// tunnel may help: the handshake ended without HTTP/2, the server has a foreign certificate, or the
// proxy refuses the address (403). An answer of the parent itself allows none.
bool AllowsTunnel(const absl::Status& status);

// Returns true for a message of a service on this machine that does not run: "cannot connect to
// 127.0.0.1:7440: Connection refused".
bool IsRefusedByThisMachine(std::string_view message);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_CONNECTION_ERROR_H_
