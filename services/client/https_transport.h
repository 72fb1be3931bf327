// Delivery as old sidecars do it: HTTPS PUT to the run's listener.
#ifndef MUSTER_SERVICES_CLIENT_HTTPS_TRANSPORT_H_
#define MUSTER_SERVICES_CLIENT_HTTPS_TRANSPORT_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "services/client/result_transport.h"

namespace muster::client {

struct HttpsOptions {
  std::string url;  // "https://host:port"; a path is ignored
  std::string ca_pem;
  std::string certificate_pem;  // the first certificate is sent: the run's authority signed it
  std::string key_pem;
};

// The whole file goes in each try (the listener keeps what it got, but cannot say how much). An
// error result goes as the JSON object {"error": "..."}, as old sidecars send it.
std::unique_ptr<ResultTransport> MakeHttpsTransport(HttpsOptions options);

// POSTs a progress report (a JSON object); one try of at most 10 s.
absl::Status PostProgress(const HttpsOptions& options, std::string_view plugin,
                          std::string_view node, const std::string& json);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_HTTPS_TRANSPORT_H_
