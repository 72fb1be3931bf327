#include "services/agent/progress_relay.h"

#include <string>
#include <string_view>
#include <utility>

#include "services/agent/progress_json.h"
#include "services/client/client_status.h"
#include "services/client/https_transport.h"

namespace muster {
namespace {

struct Row {
  std::string_view reason;
  int code;
};

// The codes that the gateway uses on a run's listener.
constexpr Row kCodes[] = {
    {"INVALID_PROGRESS", 400}, {"PAIR_NOT_PLANNED", 403}, {"NOT_YOURS", 403},
    {"RUN_NOT_FOUND", 503},    {"STATUS_NOT_READY", 503}, {"OVERLOADED", 503},
};

int CodeOf(const client::Status& status) {
  for (const Row& row : kCodes) {
    if (row.reason == status.reason) return row.code;
  }
  return status.code == client::Code::kRefused ? 403 : 500;
}

ProgressAnswer ToAnswer(const client::Status& status) {
  if (status.ok()) return {};
  return {CodeOf(status), status.reason + ": " + status.message + "\n"};
}

}  // namespace

ProgressRelay MakeProgressRelay(const client::Config& config, client::Client& client) {
  if (config.grpc_targets.empty()) {
    const client::HttpsOptions listener{config.aggregator_url, config.ca_cert, config.client_cert,
                                        config.client_key};
    return [=](const std::string& body) -> ProgressAnswer {
      auto answer = client::RelayProgress(listener, config.plugin, config.node, body);
      if (!answer.ok()) return {500, std::string(answer.status().message()) + "\n"};
      return {answer->code, std::move(answer->body)};
    };
  }
  return [&client](const std::string& body) {
    const auto progress = ParseProgressJson(body);
    if (!progress.ok()) return ToAnswer(client::ToClientStatus(progress.status()));
    return ToAnswer(client.ReportProgress(*progress));
  };
}

}  // namespace muster
