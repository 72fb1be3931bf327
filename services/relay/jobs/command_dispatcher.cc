#include "services/relay/jobs/command_dispatcher.h"

#include <algorithm>
#include <utility>

#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

// So many targets travel in one message to a relay: each has a proof of up to half a KiB.
constexpr int kTargetsAtOnce = 500;

// An answer to a command that has ended takes its way through the tree.
constexpr absl::Duration kAnswerGrace = absl::Seconds(30);

// Each hop takes a little of the time that is left, so that what lies below ends first, and says
// so.
absl::Duration Shrunk(absl::Duration left) { return left - std::min(left / 50, absl::Seconds(1)); }

}  // namespace

void CommandDispatcher::Hold() {
  MutexLock lock(mutex_);
  held_ = true;
}

void CommandDispatcher::Release() {
  MutexLock lock(mutex_);
  if (!std::exchange(held_, false)) return;
  for (const auto& [id, job] : jobs_) {
    std::vector<std::string> nodes;
    for (const auto& [node, target] : job.targets) nodes.push_back(node);
    Send(id, job, nodes);
  }
}

void CommandDispatcher::Take(v1::JobCommand command) {
  const absl::Duration now = clock_.MonotonicNow();
  std::vector<std::string> nodes;
  MutexLock lock(mutex_);
  Job& job = jobs_[command.job()];
  if (job.command == nullptr) {
    job.command = std::make_shared<const v1::SignedCommand>(std::move(*command.mutable_command()));
    job.begin_until = now + FromProto(command.begin_within());
    job.end_until = job.begin_until + FromProto(command.end_within());
  }
  if (job.cancelled) return;
  for (v1::JobCommand::Target& target : *command.mutable_targets()) {
    nodes.push_back(target.node());
    job.targets[target.node()] = std::move(target);
  }
  Send(command.job(), job, nodes);
}

// To each child what is for it and for those below it.
void CommandDispatcher::Send(const std::string& id, const Job& job,
                             const std::vector<std::string>& nodes) {
  const absl::Duration now = clock_.MonotonicNow();
  if (held_ || (now >= job.begin_until && !job.cancelled)) return;
  std::map<std::shared_ptr<ChildLink>, std::vector<const v1::JobCommand::Target*>> by_child;
  for (const std::string& node : nodes) {
    const auto target = job.targets.find(node);
    if (target == job.targets.end()) continue;
    if (auto link = tree_.Route(node)) by_child[std::move(link)].push_back(&target->second);
  }
  for (const auto& [link, targets] : by_child) {
    for (size_t begin = 0; begin < targets.size(); begin += kTargetsAtOnce) {
      const size_t end = std::min(targets.size(), begin + kTargetsAtOnce);
      v1::AttachResponse message;
      if (job.cancelled) {
        message.mutable_cancel()->set_job(id);
        for (size_t i = begin; i < end; ++i)
          message.mutable_cancel()->add_nodes(targets[i]->node());
      } else {
        v1::JobCommand& command = *message.mutable_command();
        command.set_job(id);
        *command.mutable_command() = *job.command;
        for (size_t i = begin; i < end; ++i) *command.add_targets() = *targets[i];
        ToProto(Shrunk(job.begin_until - now), command.mutable_begin_within());
        ToProto(Shrunk(job.end_until - std::max(now, job.begin_until)),
                command.mutable_end_within());
      }
      link->Send(std::move(message));
    }
  }
}

void CommandDispatcher::Cancel(const v1::JobCancel& cancel) {
  MutexLock lock(mutex_);
  const auto it = jobs_.find(cancel.job());
  if (it == jobs_.end()) return;
  Job& job = it->second;
  std::vector<std::string> nodes(cancel.nodes().begin(), cancel.nodes().end());
  if (nodes.empty()) {
    for (const auto& [node, target] : job.targets) nodes.push_back(node);
  }
  // A job is cancelled as a whole; `nodes` only names those below this relay.
  job.cancelled = true;
  Send(cancel.job(), job, nodes);
}

void CommandDispatcher::Came(const std::vector<std::string>& names) {
  MutexLock lock(mutex_);
  for (const auto& [id, job] : jobs_) Send(id, job, names);
}

void CommandDispatcher::Saw(const v1::JobRecords& records) {
  MutexLock lock(mutex_);
  for (const v1::JobRecord& record : records.records()) {
    if (!record.has_final()) continue;
    const auto job = jobs_.find(record.job());
    if (job == jobs_.end()) continue;
    job->second.targets.erase(record.node());
    if (job->second.targets.empty()) jobs_.erase(job);
  }
}

void CommandDispatcher::Acknowledge(const v1::RecordsAck& ack) {
  std::map<std::shared_ptr<ChildLink>, v1::AttachResponse> by_child;
  for (const v1::RecordsAck::Reached& reached : ack.reached()) {
    if (auto link = tree_.Route(reached.node())) {
      *by_child[std::move(link)].mutable_records_ack()->add_reached() = reached;
    }
  }
  for (auto& [link, message] : by_child) link->Send(std::move(message));
}

void CommandDispatcher::Tick() {
  const absl::Duration now = clock_.MonotonicNow();
  MutexLock lock(mutex_);
  absl::erase_if(jobs_, [&](const auto& job) { return job.second.end_until + kAnswerGrace < now; });
}

size_t CommandDispatcher::open() const {
  MutexLock lock(mutex_);
  return jobs_.size();
}

}  // namespace muster
