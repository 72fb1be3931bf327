#include "services/agent/agent.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "services/agent/agent_config.h"
#include "services/agent/agent_state.h"
#include "services/agent/modules.h"
#include "services/agent/outcome.h"
#include "services/agent/plugin_source.h"
#include "services/agent/preflight/authorisation.h"
#include "services/agent/preflight/preflight.h"
#include "services/agent/progress_endpoint.h"
#include "services/agent/progress_relay.h"
#include "services/agent/stop_on_signal.h"
#include "services/client/client_status.h"
#include "services/client/delayed_stop.h"
#include "services/common/base/backoff.h"
#include "services/common/base/clock.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/client.h"

namespace muster {
namespace {

using client::Code;
using client::Delivery;
using client::Phase;

// After this time the work begins, even if the checks have not ended.
constexpr absl::Duration kPreflightLimit = absl::Seconds(20);
// After this time an error is delivered for a result that the disk does not keep.
constexpr absl::Duration kKeepLimit = absl::Minutes(10);
constexpr BackoffOptions kDiskRetry = {absl::Seconds(1), absl::Seconds(30)};

// The work of this agent.
struct Assignment {
  const ModuleEntry* module = nullptr;
  PluginDefinition definition;
};

std::string ModeOf(const PluginDefinition& definition) {
  switch (definition.kind) {
    case PluginKind::kExec:
      return "exec";
    case PluginKind::kModule:
      return "module";
    case PluginKind::kContainer:
      return "wait";
  }
  return "wait";
}

// Reports in heartbeats why the work has not begun.
void ReportWait(client::Client& client, const absl::Status& why) {
  const bool asked_to_wait = absl::IsResourceExhausted(why) || RetryAfterOf(why).has_value();
  client.SetPhase(asked_to_wait ? Phase::kBackpressured : Phase::kBlocked,
                  "the plugin cannot be fetched from the fleet yet: " + std::string(why.message()));
}

void LogHeartbeats(const client::Status& status) {
  if (status.ok()) {
    Log(LogLevel::kInfo, "the status service receives heartbeats again");
  } else if (status.reason == "DUPLICATE_AGENT") {
    Log(LogLevel::kError,
        "another agent sends heartbeats with this identity; this agent sends none and continues "
        "the work",
        {{"error", status.message}, {"next_step", status.next_step}});
  } else {
    Log(LogLevel::kWarning, "the status service does not receive heartbeats; the work continues",
        {{"error", status.message}});
  }
}

// Returns a watcher that logs why the delivery waits, whenever the reason changes.
client::WaitWatcher LogWaits(const client::Config& config) {
  return [run = config.run, plugin = config.plugin,
          last = std::string()](const client::Status& why) mutable {
    if (why.reason == last) return;
    last = why.reason;
    Log(LogLevel::kWarning, "the result is not delivered yet; trying again",
        {{"run", run}, {"plugin", plugin}, {"error", why.message}, {"next_step", why.next_step}});
  };
}

void LogRetry(const client::Config& config, std::string_view what, const client::Status& why) {
  LogLimited(LogLevel::kWarning, what, absl::StrCat(config.run, "/", config.plugin),
             {{"run", config.run}, {"plugin", config.plugin}, {"error", why.message}});
}

bool IsDiskFailure(std::string_view reason) {
  return reason == "DISK_FULL" || reason == "IO_ERROR" || reason == "FILE_SYSTEM_NOT_WRITABLE" ||
         reason == "SYSTEM_LIMIT";
}

// Opens the state, and locks its folder. Repeats that for a work that is offered only once.
absl::StatusOr<std::unique_ptr<AgentState>> OpenState(const AgentConfig& config,
                                                      const std::stop_token& stop) {
  const client::Config& own = config.client;
  for (Backoff backoff(kDiskRetry);;) {
    auto state = AgentState::Open(own.state_dir, own.run, own.plugin, own.node, config.kept);
    if (state.ok() || !config.collects_once || absl::IsAborted(state.status())) return state;
    LogRetry(own, "the state of a collection cannot be opened; trying again",
             client::ToClientStatus(state.status()));
    if (!WaitFor(backoff.Next(std::nullopt), stop)) return errors::Interrupted();
  }
}

// Returns the definition from the configuration or the fleet, if the mode requires one or is
// unknown.
absl::StatusOr<std::optional<PluginDefinition>> FindDefinition(AgentConfig& config,
                                                               client::Client& client,
                                                               const std::stop_token& stop) {
  if (config.definition.empty()) {
    const ModuleEntry* module = FindModule(config.client.plugin);
    const bool built_in = config.mode.empty() && module != nullptr && module->built_in;
    const bool needed = config.mode == "exec" || (config.mode.empty() && config.module.empty());
    if (built_in || !needed) return std::nullopt;
    if (config.client.grpc_targets.empty()) {
      if (config.mode != "exec") return std::nullopt;
      return errors::ConfigInvalid("configuration", "definition", "it is required in mode exec");
    }
    ASSIGN_OR_RETURN(
        auto planned,
        FetchPlannedPlugin(
            config.client, [&](const absl::Status& why) { ReportWait(client, why); }, stop));
    config.definition = std::move(planned.definition_yaml);
    if (!config.client.deadline) client.SetDeadline(absl::ToChronoTime(planned.deadline));
  }
  auto definition = ParsePluginDefinition(config.definition, "definition");
  if (!definition.ok()) {
    return errors::ConfigInvalid("configuration", "definition",
                                 ToStd(definition.status().message()));
  }
  return std::optional(*std::move(definition));
}

absl::StatusOr<Assignment> Assign(AgentConfig& config, client::Client& client,
                                  const std::stop_token& stop) {
  ASSIGN_OR_RETURN(auto definition, FindDefinition(config, client, stop));
  Assignment assignment;
  std::string mode = config.mode;
  if (definition) {
    assignment.definition = *definition;
    if (mode.empty()) mode = ModeOf(assignment.definition);
  }
  const std::string name = config.module.empty() ? config.client.plugin : config.module;
  const ModuleEntry* module = FindModule(name);
  const bool built_in = module != nullptr && module->built_in;
  if (mode.empty()) mode = built_in || !config.module.empty() ? "module" : "wait";
  if (mode == "module" && !built_in) {
    return errors::ConfigInvalid("configuration", "module",
                                 "this agent has no built-in module \"" + name + "\"");
  }
  if (mode == "exec" && assignment.definition.kind != PluginKind::kExec) {
    return errors::ConfigInvalid("configuration", "definition",
                                 "it has no command, or it has an image");
  }
  assignment.module = mode == "module" ? module : FindModule(mode);
  return assignment;
}

class Agent {
 public:
  Agent(AgentConfig config, Assignment assignment, client::Client& client,
        std::unique_ptr<AgentState> state, std::stop_token stop)
      : config_(std::move(config)),
        assignment_(std::move(assignment)),
        client_(client),
        state_(std::move(state)),
        stop_(std::move(stop)) {}

  Delivery Run() {
    if (state_->phase() == AgentPhase::kCommitted && !waits()) {
      if (!IsCommitDisproved()) {
        Log(LogLevel::kInfo, "the result is already committed",
            {{"plugin", config_.client.plugin}});
        return {};
      }
      Log(LogLevel::kWarning, "the fleet does not have the result that was reported as committed",
          {{"run", config_.client.run}, {"plugin", config_.client.plugin}});
      if (auto status = state_->Clear(); !status.ok()) return Failed(status);
    }
    if (state_->phase() == AgentPhase::kSettled && config_.collects_once) {
      if (!IsErrorDisproved()) return ErrorDelivered(state_->failure());
      Log(LogLevel::kWarning, "the fleet does not have the error that was reported as committed",
          {{"run", config_.client.run}, {"plugin", config_.client.plugin}});
      return DeliverError(state_->failure());
    }
    if (state_->phase() == AgentPhase::kFailed && !waits()) return DeliverError(state_->failure());
    if (state_->phase() != AgentPhase::kProduced || waits()) {
      const auto result = Produce();
      if (!result.ok()) return HandleFailure(result.status());
      if (auto status = Keep(*result); !status.ok()) return HandleFailure(status);
    }
    return Deliver();
  }

 private:
  // A relay that lies may have reported the commit. Without an answer the marker is believed, so
  // that the plugin does not run twice. The aggregator answers, so a commit that was in progress
  // when this agent was asked to work again counts.
  bool IsCommitDisproved() const {
    const v1::Outcome outcome = AskOutcome();
    return outcome != v1::OUTCOME_GENUINE && outcome != v1::OUTCOME_UNSPECIFIED;
  }

  // As for a result, but any committed outcome proves the report.
  bool IsErrorDisproved() const {
    const v1::Outcome outcome = AskOutcome();
    return outcome == v1::OUTCOME_PENDING || outcome == v1::OUTCOME_TIMED_OUT;
  }

  v1::Outcome AskOutcome() const {
    if (config_.client.grpc_targets.empty()) return v1::OUTCOME_UNSPECIFIED;
    return AskService(config_.client, config_.client.grpc_targets[0], stop_)
        .value_or(v1::OUTCOME_UNSPECIFIED);
  }

  // Another process then owns the results folder, and its done file holds the state.
  bool waits() const { return assignment_.module->name == "wait"; }

  absl::StatusOr<ModuleResult> Produce() {
    RETURN_IF_ERROR(state_->MakeFolders());
    const absl::Duration configured = absl::FromChrono(config_.time_limit);
    ModuleContext context;
    context.run = config_.client.run;
    context.plugin = config_.client.plugin;
    context.node = config_.client.node;
    context.results_dir = waits() ? config_.client.results_dir : state_->results_dir();
    context.scratch_dir = state_->scratch_dir();
    context.definition = assignment_.definition;
    context.done_file_delay = absl::FromChrono(config_.client.done_file_delay);
    context.time_limit =
        configured > absl::ZeroDuration() ? configured : assignment_.module->time_limit;
    context.max_output_bytes = config_.max_output_bytes;
    context.before_start = [this](pid_t pid) { return state_->NoteProcess(pid); };
    const auto endpoint = OpenProgress();
    if (endpoint) context.progress_port = endpoint->port();
    Log(LogLevel::kInfo, "producing the result",
        {{"run", context.run},
         {"plugin", context.plugin},
         {"node", context.node},
         {"module", assignment_.module->name}});
    client_.SetPhase(waits() ? Phase::kWaiting : Phase::kWorking);
    return assignment_.module->make()->Run(context, stop_);
  }

  // Returns the address for progress reports, if the plugin may send them and the port is free.
  std::unique_ptr<ProgressEndpoint> OpenProgress() const {
    if (config_.progress_port == 0 || assignment_.module->built_in) return nullptr;
    const int64_t port =
        config_.progress_port == kAnyProgressPort ? int64_t{0} : config_.progress_port;
    auto endpoint = ProgressEndpoint::Start(static_cast<uint16_t>(port),
                                            MakeProgressRelay(config_.client, client_));
    if (endpoint.ok()) return *std::move(endpoint);
    Log(LogLevel::kWarning, "plugins cannot report progress here",
        {{"plugin", config_.client.plugin},
         {"error", endpoint.status()},
         {"next_step", NextStepOf(endpoint.status())}});
    return nullptr;
  }

  // Notes the result. The plugin must not run again for a failure of the disk.
  absl::Status Keep(const ModuleResult& result) {
    const absl::Duration end = SystemClock().MonotonicNow() + kKeepLimit;
    for (Backoff backoff(kDiskRetry);;) {
      absl::Status status = state_->SetProduced(result);
      if (!IsDiskFailure(ReasonOf(status)) || SystemClock().MonotonicNow() >= end) return status;
      LogRetry(config_.client, "the result cannot be noted; trying again",
               client::ToClientStatus(status));
      if (!WaitFor(backoff.Next(std::nullopt), stop_)) return errors::Interrupted();
    }
  }

  // Repeats a delivery that is offered only once while the disk fails.
  Delivery Submit(absl::FunctionRef<Delivery(const std::stop_token&)> submit) {
    const client::DelayedStop late(client::kStopGrace, stop_);
    for (Backoff backoff(kDiskRetry);;) {
      Delivery delivery = submit(late.token());
      if (!config_.collects_once || !IsDiskFailure(delivery.status.reason)) return delivery;
      LogRetry(config_.client, "the delivery cannot be noted; trying again", delivery.status);
      if (!WaitFor(backoff.Next(std::nullopt), stop_)) return delivery;
    }
  }

  // Delivers an error result, unless the agent was only stopped. Keeps the error until then: an
  // attempt after a refused delivery does not run the plugin again.
  Delivery HandleFailure(const absl::Status& why) {
    if (why.code() == absl::StatusCode::kCancelled) return Failed(why);
    Log(LogLevel::kWarning, "no result was produced", {{"error", why}});
    if (waits()) return DeliverError(client::ToClientStatus(why));
    const absl::Status kept = state_->SetFailed(client::ToClientStatus(why));
    if (!kept.ok()) Log(LogLevel::kWarning, "the plugin's error is not kept", {{"error", kept}});
    return DeliverError(state_->failure());
  }

  Delivery DeliverError(const client::Status& why) {
    const std::string text = absl::StrCat(why.reason, why.reason.empty() ? "" : ": ", why.message,
                                          why.next_step.empty() ? "" : "\n", why.next_step);
    Delivery delivery = Submit([&](const auto& stop) { return client_.SubmitError(text, stop); });
    if (delivery.status.code == Code::kErrorDelivered) return ErrorDelivered(why);
    if (delivery.status.code == Code::kConflict) {
      if (auto status = Settle(why); !status.ok()) return Failed(status);
    }
    return delivery;
  }

  Delivery Deliver() {
    const client::SubmitOptions options = {.media_type = state_->result().media_type,
                                           .no_links = !assignment_.module->built_in};
    Delivery delivery = Submit(
        [&](const auto& stop) { return client_.SubmitFile(state_->result().path, options, stop); });
    if (delivery.status.ok()) {
      if (auto status = state_->SetCommitted(delivery.receipt); !status.ok()) return Failed(status);
    } else if (delivery.status.code == Code::kErrorDelivered) {
      return ErrorDelivered(delivery.status);
    } else if (delivery.is_error && delivery.status.code == Code::kConflict) {
      // The faulty result cannot be delivered at any later start either.
      if (auto status = Settle(delivery.status); !status.ok()) return Failed(status);
    } else if (delivery.status.code == Code::kBadConfig) {
      if (waits()) return DeliverError(delivery.status);
      // If the result was removed or replaced, the next start produces it again.
      std::error_code error;
      if (!is_regular_file(std::filesystem::symlink_status(state_->result().path, error))) {
        if (auto status = state_->Clear(); !status.ok()) return Failed(status);
      }
      delivery.status.code = Code::kFailed;
    }
    return delivery;
  }

  // Handles the end of the work without a genuine result. A committed error can be replaced: the
  // next start produces the result again, unless only the fleet may ask for that.
  absl::Status Settle(const client::Status& why) {
    return config_.collects_once ? state_->SetSettled(why) : state_->Clear();
  }

  Delivery ErrorDelivered(client::Status why) {
    if (auto status = Settle(why); !status.ok()) return Failed(status);
    why.code = Code::kErrorDelivered;
    return {std::move(why), {}};
  }

  static Delivery Failed(const absl::Status& status) {
    return {client::ToClientStatus(status), {}};
  }

  const AgentConfig config_;
  const Assignment assignment_;
  client::Client& client_;
  const std::unique_ptr<AgentState> state_;
  const std::stop_token stop_;
};

absl::StatusOr<Delivery> Run(AgentConfig config, const std::stop_token& stop) {
  // Checks the configuration first, because a plugin may run for hours.
  client::Status ready;
  const auto client = client::Client::Create(config.client, &ready);
  if (!client) return Delivery{ready, {}};
  // Locks the folder before the first heartbeat: only one agent may send them.
  ASSIGN_OR_RETURN(auto state, OpenState(config, stop));
  client->SetPhase(Phase::kChecking);
  client->StartHeartbeats(LogHeartbeats);
  client->WatchWaits(LogWaits(config.client));
  Preflight preflight(config.client, *client);
  preflight.AwaitFirst(kPreflightLimit, stop);
  ASSIGN_OR_RETURN(auto assignment, Assign(config, *client, stop));
  Agent agent(std::move(config), std::move(assignment), *client, std::move(state), stop);
  return agent.Run();
}

}  // namespace

Delivery GatherAndDeliver(AgentConfig config, const std::stop_token& stop) {
  auto delivery = Run(std::move(config), stop);
  if (!delivery.ok()) return Delivery{client::ToClientStatus(delivery.status()), {}};
  return *std::move(delivery);
}

int RunAgent(const AgentOptions& options) {
  const StopOnSignal signals;
  auto config = LoadAgentConfig(options.config_path, std::getenv);
  const std::string subject = ConfigSubject(options.config_path, std::getenv);
  if (!config.ok()) return PrintOutcome({client::ToClientStatus(config.status()), {}}, subject);
  return PrintOutcome(GatherAndDeliver(*std::move(config), signals.token()), subject);
}

}  // namespace muster
