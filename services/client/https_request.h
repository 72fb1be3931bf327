// Requests to a run's listener for old clients, by libcurl.
#ifndef MUSTER_SERVICES_CLIENT_HTTPS_REQUEST_H_
#define MUSTER_SERVICES_CLIENT_HTTPS_REQUEST_H_

#include <curl/curl.h>

#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "services/common/rpc/https_handle.h"

namespace muster::client {

struct HttpsOptions {
  std::string url;  // "https://host:port"; a path is ignored
  std::string ca_pem;
  std::string certificate_pem;  // the first certificate is sent: the run's authority signed it
  std::string key_pem;
};

// What came back of one request under way.
struct Exchange {
  std::string answer;  // its first 4 KiB
  std::optional<absl::Duration> retry_after;
  std::optional<absl::Time> date;
  std::stop_token stop;
  curl_off_t moved = -1;
  absl::Time moved_at = absl::Now();
};

// A request with mutual TLS that ends on `exchange.stop`, and when nothing moves for 5 minutes.
// Null if there is no memory. `exchange` outlives it.
Curl NewRequest(const HttpsOptions& options, Exchange& exchange);

// "https://host:port/api/v1/KIND/by-node/NODE/PLUGIN", or ".../global/PLUGIN".
std::string UrlOf(CURL* curl, const HttpsOptions& options, std::string_view kind,
                  std::string_view plugin, std::string_view node);

// Runs it to the answer's end; the answer's code. UNAVAILABLE (CONNECTION_FAILED, NO_PROGRESS),
// CANCELLED (INTERRUPTED).
absl::StatusOr<long> Perform(CURL* curl, const Exchange& exchange, const std::string& url);

// Why there is none, as Perform says it.
absl::Status FromCurl(CURLcode code, const Exchange& exchange, const std::string& url);

// What a code that is not 200 means, in the words of the API.
absl::Status FromHttp(long code, const Exchange& exchange, const std::string& url);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_HTTPS_REQUEST_H_
