#include "services/relay/root_role.h"

#include <chrono>
#include <memory>
#include <utility>

#include "services/common/base/error.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/status_macros.h"
#include "services/common/jobs/records_signature.h"
#include "services/common/rpc/channel.h"
#include "services/relay/target_lookup.h"
#include "services/relay/topology/child_session.h"

namespace muster {
namespace {

// The time for all unknown targets of a job together.
constexpr std::chrono::seconds kExplainWithin(2);

std::shared_ptr<grpc::ChannelCredentials> CredentialsFor(const RoleParts& parts,
                                                         ServiceRole service) {
  return MakeChannelCredentials(
      ChannelIdentityFolder{parts.self.fleet(), parts.self.published_folder()}, {service});
}

}  // namespace

RootRole::RootRole(const RoleParts& parts)
    : offers_(parts.topology, parts.clock),
      redeliveries_(parts.topology, parts.clock),
      aggregator_(parts.config.aggregator_targets, CredentialsFor(parts, ServiceRole::kAggregator),
                  parts.threads.timers(), parts.threads.background()),
      status_(parts.config.status_targets, CredentialsFor(parts, ServiceRole::kStatus),
              parts.threads.timers(), parts.threads.background()),
      jobs_(parts.config.jobs_targets, CredentialsFor(parts, ServiceRole::kJobs),
            parts.threads.timers(), parts.threads.background()) {}

absl::StatusOr<std::unique_ptr<RelayRole>> RootRole::Start(const RoleParts& parts) {
  std::unique_ptr<RootRole> role(new RootRole(parts));
  const RelayConfig& config = parts.config;
  JobBoard::Options jobs;
  jobs.folder = config.state_folder + "/jobs";
  jobs.max_running = config.jobs.max_running;
  jobs.max_output = static_cast<int64_t>(config.jobs.max_output);
  jobs.retention = config.jobs.retention;
  jobs.verify = [fleet = parts.self.fleet(), &chains = parts.chains](const v1::JobRecord& final) {
    return VerifyFinal(final, fleet, chains);
  };
  jobs.explain = [&aggregator = role->aggregator_](const std::vector<std::string>& nodes) {
    return ExplainUnknownTargets(aggregator.Get(), nodes,
                                 std::chrono::system_clock::now() + kExplainWithin);
  };
  jobs.on_unaudited = [role = role.get()] {
    if (role->audit_ != nullptr) role->audit_->Wake();
  };
  parts.dispatcher.Hold();
  ASSIGN_OR_RETURN(role->board_,
                   JobBoard::Open(std::move(jobs),
                                  {PosixFileOps(), parts.topology, parts.dispatcher, parts.clock,
                                   parts.threads.timers(), role->job_writer_, role->late_jobs_}));
  // The executor of the writer: a job does not end while it is marked.
  role->audit_ = std::make_unique<JobAudit>(
      JobAudit::Parts{
          [&board = *role->board_](size_t limit) { return board.Unaudited(limit); },
          [&board = *role->board_](const auto& record) { return board.MarkAudited(record); },
          SendToAggregator([&aggregator = role->aggregator_] { return aggregator.Get(); })},
      parts.threads.timers(), role->job_writer_);
  role->upstream_ = std::make_unique<RootUpstream>(
      parts.topology, parts.trust, parts.operators, role->offers_, role->redeliveries_,
      RootUpstream::Services{[&aggregator = role->aggregator_] { return aggregator.Get(); },
                             [&status = role->status_] { return status.Get(); },
                             [&jobs = role->jobs_] { return jobs.Get(); }},
      [&dispatcher = parts.dispatcher] { dispatcher.Release(); }, parts.clock,
      parts.threads.timers(), parts.threads.background());
  // Children that were welcomed before spool their results until they learn of the connection, and
  // keep their lists of ended runs.
  role->upstream_watch_ =
      role->upstream_->OnChange([&topology = parts.topology, &upstream = *role->upstream_,
                                 &clock = parts.clock, interval = config.interval] {
        if (!upstream.connected()) return;
        for (const auto& child : topology.Children()) {
          SendWelcome(*child, topology, upstream, interval, clock);
        }
      });
  return role;
}

absl::Status RootRole::Ready() const {
  if (!upstream_->caught_up()) {
    return absl::UnavailableError("the change feed of the aggregator was not received yet");
  }
  if (!upstream_->command_ca()) {
    return absl::UnavailableError("the command revocations were not received yet");
  }
  return absl::OkStatus();
}

void RootRole::OnReachable(const std::vector<std::string>& names) {
  offers_.OnReachable(names);
  redeliveries_.OnReachable(names);
  board_->OnReachable();
}

}  // namespace muster
