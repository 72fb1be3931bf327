#include "services/agent/plugin_source.h"

#include <grpcpp/grpcpp.h>

#include <chrono>

#include "muster/v1/runs.grpc.pb.h"
#include "services/client/errors.h"
#include "services/client/sender_identity.h"
#include "services/common/base/backoff.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/client.h"
#include "services/common/errors/runs.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/status.h"

namespace muster {
namespace {

constexpr std::chrono::seconds kCallLimit{20};

absl::StatusOr<v1::Run> GetRunOnce(const std::string& target,
                                   const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                                   const std::string& run, const std::stop_token& stop = {}) {
  const auto stub = v1::RunService::NewStub(MakeChannel(target, credentials));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kCallLimit);
  const std::stop_callback cancel(stop, [&] { context.TryCancel(); });
  v1::GetRunRequest request;
  request.set_run(run);
  v1::Run answer;
  const grpc::Status status = stub->GetRun(&context, request, &answer);
  if (!status.ok()) return FromGrpc(status);
  return answer;
}

std::shared_ptr<grpc::ChannelCredentials> CredentialsOf(const client::Config& config,
                                                        const client::SenderIdentity& identity) {
  return MakeChannelCredentials(ChannelIdentity{identity.identity().fleet, config.fleet_ca_cert,
                                                config.client_cert, config.client_key},
                                {ServiceRole::kAggregator, ServiceRole::kRelay});
}

bool WorthAnotherTry(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kInternal:
      return true;
    default:
      return false;
  }
}

}  // namespace

absl::StatusOr<PlannedPlugin> FetchPlannedPlugin(
    const client::Config& config, const std::function<void(const absl::Status& why)>& on_wait,
    const std::stop_token& stop) {
  ASSIGN_OR_RETURN(auto identity, client::SenderIdentity::Load(config.client_cert,
                                                               config.client_key, absl::Now()));
  const auto credentials = CredentialsOf(config, identity);
  Backoff backoff;
  for (size_t i = 0;; ++i) {
    const std::string& target = config.grpc_targets[i % config.grpc_targets.size()];
    const auto run = GetRunOnce(target, credentials, config.run);
    if (run.ok()) {
      for (const v1::Plugin& plugin : run->plugins()) {
        if (plugin.name() != config.plugin) continue;
        return PlannedPlugin{plugin.definition_yaml(),
                             absl::FromUnixSeconds(run->deadline().seconds())};
      }
      return errors::PairNotPlanned(config.run, config.plugin, config.node);
    }
    if (!WorthAnotherTry(run.status())) return run.status();
    if (absl::Now() > identity.not_after()) return client::DeadlineError(run.status());
    Log(LogLevel::kWarning, "cannot fetch the plugin yet",
        {{"run", config.run}, {"plugin", config.plugin}, {"error", run.status()}});
    on_wait(run.status());
    if (!WaitFor(backoff.Next(RetryAfterOf(run.status())), stop)) {
      return errors::Interrupted();
    }
  }
}

absl::StatusOr<v1::RunState> FetchRunState(const client::Config& config,
                                           const std::stop_token& stop) {
  ASSIGN_OR_RETURN(const auto identity, client::SenderIdentity::Load(
                                            config.client_cert, config.client_key, absl::Now()));
  ASSIGN_OR_RETURN(const auto run, GetRunOnce(config.grpc_targets[0],
                                              CredentialsOf(config, identity), config.run, stop));
  return run.state();
}

}  // namespace muster
