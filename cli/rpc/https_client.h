// A client for HTTPS requests to the gateway, with a client certificate.
#ifndef MUSTER_CLI_RPC_HTTPS_CLIENT_H_
#define MUSTER_CLI_RPC_HTTPS_CLIENT_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "services/common/rpc/https_handle.h"

namespace muster::cli {

struct HttpsAnswer {
  bool unchanged = false;  // 304: the content still has the ETag of the request
  std::string body;
  std::string etag;
};

// A client that reuses its connection. Not thread-safe.
class HttpsClient {
 public:
  // The identity that the certificate of the server has to have, beside its host name.
  struct GatewayOf {
    std::string fleet;
    // Accepts also a certificate without an identity of a fleet, as operators give them to the
    // status listeners of runs.
    bool or_none = false;
  };

  // Takes PEM: the CA of the server, the client's chain and its key. Requests to a server without
  // the `identity` fail with SERVER_CERTIFICATE_REFUSED.
  HttpsClient(std::string_view ca_pem, std::string_view certificate_pem, std::string_view key_pem,
              std::optional<GatewayOf> identity = std::nullopt);
  HttpsClient(const HttpsClient&) = delete;  // curl_ refers to identity_

  // Sends a GET request, limited to 20 s and 256 MiB. With an `etag` the answer may be `unchanged`.
  // Returns UNAVAILABLE (GATEWAY_UNREACHABLE) if the connection or the TLS handshake fails. For any
  // other answer than 200 it returns an error with the reason in the answer. Errors are marked with
  // FromService. Repeats the request for 2 s while it cannot connect, while the connection is lost
  // before the end of the answer, and while the answer is UNAVAILABLE, as during a restart.
  absl::StatusOr<HttpsAnswer> Get(const std::string& url, const std::string& etag = "");

  // Sends a POST request with an empty JSON object as the body. Repeats only a failed connection.
  absl::StatusOr<HttpsAnswer> Post(const std::string& url);

 private:
  // Repeats a request that was not sent, and an idempotent one also as Get states.
  absl::StatusOr<HttpsAnswer> Perform(const std::string& url, const std::string& header,
                                      bool idempotent);
  // Sets `*repeatable` to whether the request may succeed if it is repeated now.
  absl::StatusOr<HttpsAnswer> PerformOnce(const std::string& url, bool idempotent,
                                          bool* repeatable);

  const std::optional<GatewayOf> identity_;
  const Curl curl_;
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_HTTPS_CLIENT_H_
