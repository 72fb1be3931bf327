#include "services/relay/jobs/command_dispatcher.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "services/common/base/log.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

// The targets in one message to a relay: each has a proof of up to half a KiB.
constexpr size_t kMaxTargets = 500;

// The memory of a target besides its message.
constexpr size_t kTargetBytes = 256;

size_t BytesOf(const v1::JobCommand::Target& target) {
  return target.ByteSizeLong() + kTargetBytes;
}

// A record of a job that has ended needs this time to reach the root relay.
constexpr absl::Duration kAnswerGrace = absl::Seconds(30);

// Each hop subtracts a little of the remaining time, so that its descendants finish first.
absl::Duration Shrink(absl::Duration left) {
  left = std::max(left, absl::ZeroDuration());
  return left - std::min(left / 50, absl::Seconds(1));
}

// Calls `send` with slices of at most kMaxTargets.
template <typename Target, typename SendSlice>
void ForEachSlice(const std::vector<Target*>& targets, const SendSlice& send) {
  for (size_t begin = 0; begin < targets.size(); begin += kMaxTargets) {
    const size_t end = std::min(targets.size(), begin + kMaxTargets);
    send(std::vector<Target*>(targets.begin() + static_cast<std::ptrdiff_t>(begin),
                              targets.begin() + static_cast<std::ptrdiff_t>(end)));
  }
}

}  // namespace

void CommandDispatcher::Hold() {
  MutexLock lock(mutex_);
  held_ = true;
}

void CommandDispatcher::Release() {
  MutexLock lock(mutex_);
  if (!std::exchange(held_, false)) return;
  for (auto& [id, job] : jobs_) {
    std::vector<std::string> nodes;
    for (const auto& [node, target] : job.targets) nodes.push_back(node);
    Send(id, job, nodes);
  }
}

void CommandDispatcher::Dispatch(v1::JobCommand command, bool may_have_been_sent) {
  const absl::Duration now = clock_.MonotonicNow();
  std::vector<std::string> nodes;
  MutexLock lock(mutex_);
  if (!Reserve(command)) return;
  Job& job = jobs_[command.job()];
  if (job.command == nullptr) {
    job.command = std::make_shared<const v1::SignedCommand>(std::move(*command.mutable_command()));
    job.begin_until = now + FromProto(command.begin_within());
    job.end_until = std::max(job.end_until, job.begin_until + FromProto(command.end_within()));
  }
  for (v1::JobCommand::Target& added : *command.mutable_targets()) {
    const std::string node = added.node();
    Target& target = job.targets[node];
    target.target = std::move(added);
    target.wait_until = now + FromProto(command.wait_within());
    if (may_have_been_sent && target.stage == Stage::kWaiting) target.stage = Stage::kSent;
    nodes.push_back(node);
  }
  Send(command.job(), job, nodes);
}

size_t CommandDispatcher::CountedBytes(const Job& job, const std::string& node) {
  const auto target = job.targets.find(node);
  return target == job.targets.end() ? 0 : BytesOf(target->second.target);
}

bool CommandDispatcher::Reserve(const v1::JobCommand& command) {
  const auto job = jobs_.find(command.job());
  size_t bytes = job == jobs_.end() ? command.command().ByteSizeLong() : 0;
  for (const v1::JobCommand::Target& target : command.targets()) {
    const size_t needed = BytesOf(target);
    const size_t counted = job == jobs_.end() ? 0 : CountedBytes(job->second, target.node());
    if (needed > counted) bytes += needed - counted;
  }
  if (bytes > max_bytes_ - bytes_) {
    LogLimited(LogLevel::kWarning, "dropped a command: this relay keeps too many for its targets",
               "parent", {{"job", command.job()}, {"limit_bytes", max_bytes_}});
    return false;
  }
  jobs_[command.job()].bytes += bytes;
  bytes_ += bytes;
  return true;
}

void CommandDispatcher::Erase(Jobs::iterator job) {
  bytes_ -= job->second.bytes;
  jobs_.erase(job);
}

bool CommandDispatcher::MaySend(const Job& job, const Target& target, absl::Duration now) const {
  switch (target.stage) {
    case Stage::kCancelled:
      return true;
    case Stage::kWaiting:
      return !held_ && now < target.wait_until && now < job.begin_until;
    case Stage::kSent:
      return !held_ && now < job.begin_until;
    case Stage::kStarted:
      return false;
  }
  return false;
}

void CommandDispatcher::Send(const std::string& id, Job& job,
                             const std::vector<std::string>& nodes) {
  const absl::Duration now = clock_.MonotonicNow();
  Messages commands;
  Messages cancels;
  for (const std::string& node : nodes) {
    const auto found = job.targets.find(node);
    if (found == job.targets.end() || !MaySend(job, found->second, now)) continue;
    auto link = topology_.Route(node);
    if (link == nullptr) continue;
    Target& target = found->second;
    const bool cancelled = target.stage == Stage::kCancelled;
    if (!cancelled) target.stage = Stage::kSent;
    (cancelled ? cancels : commands)[std::move(link)].push_back(&target);
  }
  for (const auto& [link, targets] : commands) {
    ForEachSlice(targets, [&, &to = *link](const std::vector<Target*>& slice) {
      SendCommand(id, job, to, slice);
    });
  }
  for (const auto& [link, targets] : cancels) {
    ForEachSlice(targets, [&, &to = *link](const std::vector<Target*>& slice) {
      SendCancel(id, to, slice);
    });
  }
}

void CommandDispatcher::SendCommand(const std::string& id, const Job& job, ChildLink& link,
                                    const std::vector<Target*>& targets) const {
  const absl::Duration now = clock_.MonotonicNow();
  absl::Duration wait_until = now;
  v1::AttachResponse message;
  v1::JobCommand& command = *message.mutable_command();
  command.set_job(id);
  *command.mutable_command() = *job.command;
  for (const Target* target : targets) {
    *command.add_targets() = target->target;
    wait_until = std::max(wait_until, target->wait_until);
  }
  ToProto(Shrink(job.begin_until - now), command.mutable_begin_within());
  ToProto(Shrink(job.end_until - std::max(now, job.begin_until)), command.mutable_end_within());
  ToProto(Shrink(wait_until - now), command.mutable_wait_within());
  ToProto(now, command.mutable_clock());
  link.Send(std::move(message));
}

void CommandDispatcher::SendCancel(const std::string& id, ChildLink& link,
                                   const std::vector<Target*>& targets) {
  v1::AttachResponse message;
  message.mutable_cancel()->set_job(id);
  for (const Target* target : targets) message.mutable_cancel()->add_nodes(target->target.node());
  link.Send(std::move(message));
}

void CommandDispatcher::Cancel(const v1::JobCancel& cancel) {
  std::vector<std::string> nodes(cancel.nodes().begin(), cancel.nodes().end());
  MutexLock lock(mutex_);
  Job unknown;  // its cancels are sent, but not kept: the parent may have invented the names
  const auto found = jobs_.find(cancel.job());
  Job& job = found == jobs_.end() ? unknown : found->second;
  if (nodes.empty()) {
    for (const auto& [node, target] : job.targets) nodes.push_back(node);
  }
  for (const std::string& node : nodes) {
    const auto known = job.targets.find(node);
    Target& target = known == job.targets.end() ? unknown.targets[node] : known->second;
    target.target.set_node(node);
    target.stage = Stage::kCancelled;
  }
  Send(cancel.job(), job, nodes);
  if (&job != &unknown) Send(cancel.job(), unknown, nodes);
}

std::vector<std::string> CommandDispatcher::Withdraw(const std::string& job,
                                                     const std::vector<std::string>& nodes,
                                                     absl::Duration keep) {
  std::vector<std::string> never_sent;
  std::vector<std::string> cancelled;
  MutexLock lock(mutex_);
  Job& entry = jobs_[job];
  entry.end_until = std::max(entry.end_until, clock_.MonotonicNow() + keep);
  for (const std::string& node : nodes) {
    const auto found = entry.targets.find(node);
    if (found != entry.targets.end() && found->second.stage == Stage::kWaiting) {
      entry.targets.erase(found);
      never_sent.push_back(node);
      continue;
    }
    Target& target = entry.targets[node];
    target.target.set_node(node);
    target.stage = Stage::kCancelled;
    cancelled.push_back(node);
  }
  Send(job, entry, cancelled);
  if (entry.targets.empty()) Erase(jobs_.find(job));
  return never_sent;
}

bool CommandDispatcher::WasSent(const std::string& job, const std::string& node) const {
  MutexLock lock(mutex_);
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return true;
  const auto target = found->second.targets.find(node);
  return target == found->second.targets.end() || target->second.stage != Stage::kWaiting;
}

void CommandDispatcher::OnReachable(const std::vector<std::string>& names) {
  MutexLock lock(mutex_);
  for (auto& [id, job] : jobs_) Send(id, job, names);
}

void CommandDispatcher::HandleRecords(const v1::JobRecords& records) {
  for (const v1::JobRecord& record : records.records()) {
    if (record.has_started()) MarkStarted(record.job(), record.node());
    if (record.has_final()) Finish(record.job(), record.node());
  }
}

void CommandDispatcher::MarkStarted(const std::string& job, const std::string& node) {
  MutexLock lock(mutex_);
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return;
  const auto target = found->second.targets.find(node);
  if (target == found->second.targets.end()) return;
  Stage& stage = target->second.stage;
  if (stage == Stage::kSent) stage = Stage::kStarted;
}

void CommandDispatcher::Finish(const std::string& job, const std::string& node) {
  MutexLock lock(mutex_);
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return;
  found->second.targets.erase(node);
  if (found->second.targets.empty()) Erase(found);
}

void CommandDispatcher::SendAcks(const v1::RecordsAck& acks) {
  std::map<std::shared_ptr<ChildLink>, v1::AttachResponse> by_child;
  for (const v1::RecordsAck::Reached& reached : acks.reached()) {
    if (auto link = topology_.Route(reached.node())) {
      *by_child[std::move(link)].mutable_records_ack()->add_reached() = reached;
    }
  }
  for (auto& [link, message] : by_child) link->Send(std::move(message));
}

void CommandDispatcher::Tick() {
  const absl::Duration now = clock_.MonotonicNow();
  MutexLock lock(mutex_);
  for (auto job = jobs_.begin(); job != jobs_.end();) {
    const auto next = std::next(job);
    if (job->second.end_until + kAnswerGrace < now) Erase(job);
    job = next;
  }
}

size_t CommandDispatcher::open() const {
  MutexLock lock(mutex_);
  return jobs_.size();
}

}  // namespace muster
