// Requests to a run's listener for legacy clients, by libcurl.
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
  std::string certificate_pem;  // only the first certificate is sent: the run CA signed it
  std::string key_pem;
};

// The response to one request, as far as it has arrived.
struct Exchange {
  std::string answer;  // the first 4 KiB of the body
  std::optional<absl::Duration> retry_after;
  std::optional<absl::Time> date;
  std::stop_token stop;
  curl_off_t moved = -1;
  absl::Time moved_at = absl::Now();
};

// Returns a request with mutual TLS that ends on `exchange.stop`, and after 5 minutes without
// progress. Null if memory is exhausted. `exchange` must outlive it.
Curl NewRequest(const HttpsOptions& options, Exchange& exchange);

// Returns "https://host:port/api/v1/KIND/by-node/NODE/PLUGIN", or ".../global/PLUGIN".
std::string UrlOf(CURL* curl, const HttpsOptions& options, std::string_view kind,
                  std::string_view plugin, std::string_view node);

// Executes the request and returns the status code. Fails with UNAVAILABLE (CONNECTION_FAILED,
// NO_PROGRESS) or CANCELLED (INTERRUPTED).
absl::StatusOr<long> Perform(CURL* curl, const Exchange& exchange, const std::string& url);

// Returns the error of a request without response, as Perform does.
absl::Status FromCurl(CURLcode code, const Exchange& exchange, const std::string& url);

// Converts a code other than 200 to an error of the API.
absl::Status FromHttp(long code, const Exchange& exchange, const std::string& url);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_HTTPS_REQUEST_H_
