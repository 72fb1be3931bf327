// HTTPS with a client certificate, for the few things that are asked of the gateway.
#ifndef MUSTER_CLI_RPC_HTTPS_CLIENT_H_
#define MUSTER_CLI_RPC_HTTPS_CLIENT_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster::cli {

struct HttpsAnswer {
  bool unchanged = false;  // 304: the content is that of the ETag that was sent
  std::string body;
  std::string etag;
};

// Keeps its connection between calls. Not thread-safe.
class HttpsClient {
 public:
  // PEM: whom to trust as the server, the client's chain and its key.
  HttpsClient(std::string_view ca_pem, std::string_view certificate_pem, std::string_view key_pem);
  ~HttpsClient();

  HttpsClient(const HttpsClient&) = delete;
  HttpsClient& operator=(const HttpsClient&) = delete;

  // At most 20 s and 256 MiB. With an `etag` the answer may be `unchanged`. UNAVAILABLE
  // (GATEWAY_UNREACHABLE) if nobody answers or the TLS handshake fails; any other answer than 200
  // is an error with the reason it names. Errors are marked with FromService.
  absl::StatusOr<HttpsAnswer> Get(const std::string& url, const std::string& etag = "");

  // The same with an empty JSON object as the body.
  absl::StatusOr<HttpsAnswer> Post(const std::string& url);

 private:
  absl::StatusOr<HttpsAnswer> Perform(const std::string& url, const std::string& header);

  void* const curl_;  // CURL
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_HTTPS_CLIENT_H_
