#include "services/agent/preflight/authorisation.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>

#include "muster/v1/results.grpc.pb.h"
#include "services/client/https_request.h"
#include "services/client/sender_identity.h"
#include "services/common/base/status_macros.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/status.h"

namespace muster {
namespace {

constexpr std::chrono::seconds kLimit{10};

}  // namespace

absl::StatusOr<v1::Outcome> AskService(const client::Config& config, const std::string& target,
                                       const std::stop_token& stop) {
  ASSIGN_OR_RETURN(const auto identity, client::SenderIdentity::Load(
                                            config.client_cert, config.client_key, absl::Now()));
  const auto credentials =
      MakeChannelCredentials(ChannelIdentity{identity.identity().fleet, config.fleet_ca_cert,
                                             config.client_cert, config.client_key},
                             {ServiceRole::kAggregator, ServiceRole::kRelay});
  const auto stub = v1::ResultService::NewStub(MakeChannel(target, credentials));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kLimit);
  const std::stop_callback cancel(stop, [&] { context.TryCancel(); });
  v1::GetResultRequest request;
  request.mutable_key()->set_run(config.run);
  request.mutable_key()->set_plugin(config.plugin);
  request.mutable_key()->set_node(config.node);
  v1::Result result;
  RETURN_IF_ERROR(FromGrpc(stub->GetResult(&context, request, &result)));
  return result.outcome();
}

absl::Status AskListener(const client::Config& config, const std::stop_token& stop) {
  const client::HttpsOptions listener{config.aggregator_url, config.ca_cert, config.client_cert,
                                      config.client_key};
  client::Exchange exchange;
  exchange.stop = stop;
  const Curl curl = client::NewRequest(listener, exchange);
  if (!curl) return absl::ResourceExhaustedError("no memory for a request");
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT, static_cast<long>(kLimit.count()));
  const std::string url = client::UrlOf(curl.get(), listener, "health", config.plugin, config.node);
  ASSIGN_OR_RETURN(const auto code, client::Perform(curl.get(), exchange, url));
  if (code == 404 || code == 405) return absl::OkStatus();
  if (code >= 500) return absl::UnavailableError("the listener is unavailable");
  return client::FromHttp(code, exchange, url);
}

}  // namespace muster
