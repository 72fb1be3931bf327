#include "services/client/https_heartbeats.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace muster::client {
namespace {

constexpr long kSeconds = 10;
constexpr double kMostSeconds = 1e6;

// {"interval_seconds":n}
std::optional<absl::Duration> IntervalOf(const std::string& answer) {
  const auto json = nlohmann::json::parse(answer, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const auto field = json.find("interval_seconds");
  if (field == json.end() || !field->is_number()) return std::nullopt;
  const double seconds = field->get<double>();
  if (!(seconds > 0 && seconds < kMostSeconds)) return std::nullopt;
  return absl::Seconds(seconds);
}

class HttpsHeartbeats final : public HeartbeatConnection {
 public:
  HttpsHeartbeats(HttpsOptions options, const std::string& plugin, const std::string& node,
                  HeartbeatInbox& inbox, const std::stop_token& stop)
      : options_(std::move(options)), inbox_(inbox) {
    exchange_.stop = stop;
    curl_ = NewRequest(options_, exchange_);
    if (!curl_) return;
    curl_easy_setopt(curl_.get(), CURLOPT_TIMEOUT, kSeconds);
    url_ = UrlOf(curl_.get(), options_, "health", plugin, node);
  }

  void Send(const Heartbeat& heartbeat) override {
    if (heartbeat.goodbye) return;  // this protocol has no goodbye
    if (!curl_) return inbox_.OnEnd(absl::ResourceExhaustedError("no memory for a request"));
    exchange_.answer.clear();
    exchange_.retry_after.reset();
    exchange_.moved_at = absl::Now();
    const auto code = Perform(curl_.get(), exchange_, url_);
    if (!code.ok()) return inbox_.OnEnd(code.status());
    if (*code == 404 || *code == 405) {
      return inbox_.OnEnd(
          absl::UnimplementedError(url_ + ": the listener does not accept heartbeats"));
    }
    if (*code != 200) return inbox_.OnEnd(FromHttp(*code, exchange_, url_));
    HeartbeatAnswer answer;
    answer.sequence = heartbeat.sequence;
    answer.interval = IntervalOf(exchange_.answer);
    answer.time = exchange_.date;
    inbox_.OnAnswer(answer);
    inbox_.OnWritable();
  }

 private:
  const HttpsOptions options_;
  HeartbeatInbox& inbox_;
  Exchange exchange_;
  std::string url_;
  Curl curl_;  // it uses the other members
};

}  // namespace

HeartbeatDialer MakeHttpsDialer(HttpsOptions options, std::string plugin, std::string node) {
  return [options = std::move(options), plugin = std::move(plugin), node = std::move(node)](
             HeartbeatInbox& inbox,
             const std::stop_token& stop) -> std::unique_ptr<HeartbeatConnection> {
    return std::make_unique<HttpsHeartbeats>(options, plugin, node, inbox, stop);
  };
}

}  // namespace muster::client
