#include "services/simulation/job_world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "services/aggregator/simulation/crash_history.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/identity/target_set.h"
#include "services/common/journal/journal.h"
#include "services/common/rpc/proto_time.h"
#include "services/relay/jobs/job_request.h"

namespace muster::testing {
namespace {

constexpr int kNodes = 3;
constexpr int kMaxOpen = 4;  // jobs
constexpr char kSubmitter[] = "spiffe://f.muster/user/ann";
constexpr absl::Duration kBeginWithin = absl::Minutes(2);
constexpr absl::Duration kTimeLimit = absl::Minutes(3);
// A message may be in transit for so long.
constexpr absl::Duration kTransit = absl::Minutes(1);

JobRequest RequestOf(const std::string& id, std::vector<std::string> nodes, absl::Time now) {
  std::ranges::sort(nodes);
  const TargetSet targets(nodes);
  v1::Command command;
  command.set_job(id);
  command.mutable_targets()->set_nodes_sha256(targets.root());
  command.mutable_targets()->set_count(static_cast<int64_t>(targets.size()));
  command.add_argv("/bin/true");
  ToProto(now, command.mutable_not_before());
  ToProto(now + kBeginWithin, command.mutable_not_after());
  ToProto(kTimeLimit, command.mutable_time_limit());
  v1::SubmitJobRequest message;
  message.mutable_command()->set_command(command.SerializeAsString());
  for (const std::string& node : nodes) message.add_nodes(node);
  return *ReadJobRequest(std::move(message));
}

// Returns whether the outcome says that the command did not start on the node.
bool SaysNeverStarted(const v1::JobRecord& record) {
  switch (record.final().outcome()) {
    case v1::JOB_OUTCOME_UNREACHABLE:
    case v1::JOB_OUTCOME_EXPIRED:
    case v1::JOB_OUTCOME_UNKNOWN:
    case v1::JOB_OUTCOME_REFUSED:
    case v1::JOB_OUTCOME_FAILED:
      return true;
    case v1::JOB_OUTCOME_CANCELLED:
      return record.final().detail() == "it had not started";
    default:
      return false;
  }
}

}  // namespace

JobWorld::JobWorld(uint64_t seed, int crashes)
    : wanted_crashes_(crashes),
      chance_(seed),
      network_(seed + 1),
      root_(seed + 2),
      branch_("branch", network_) {
  for (int i = 1; i <= kNodes; ++i) {
    nodes_.push_back(
        std::make_unique<JobNode>(seed + 10 + i, absl::StrCat("n", i), network_, executions_));
  }
  network_.set_on_time([this](absl::Duration by) {
    root_.clock.Advance(by);
    root_.Settle();
    branch_.clock.Advance(by);
    for (const auto& node : nodes_) node->clock.Advance(by);
  });
}

JobWorld::~JobWorld() {
  DropWatchers();
  for (const auto& node : nodes_) node->Stop();
  branch_.Stop();
  root_.Stop();
}

absl::Status JobWorld::Run() {
  StartRoot();
  branch_.Start();
  for (const auto& node : nodes_) StartNode(*node);
  Every(absl::Milliseconds(250), [this] {
    for (const auto& node : nodes_) node->Tick(ParentOf(*node));
  });
  Every(absl::Seconds(1), [this] {
    branch_.Tick(root_);
    if (root_.running()) root_.Tick();
    if (!calm_ && OneIn(3)) SubmitJob();
    if (!calm_ && OneIn(8)) CancelJob();
  });
  Every(absl::Milliseconds(500), [this] { FollowJobs(); });
  Every(absl::Seconds(3), [this] { Break(CheckJobs()); });
  network_.After(absl::Seconds(5), [this] { Disturb(); });
  RunUntil([this] { return crashes_ >= wanted_crashes_; });
  RETURN_IF_ERROR(broken_);
  return Settle();
}

void JobWorld::Every(absl::Duration period, const std::function<void()>& work) {
  network_.After(period, [this, period, work] {
    work();
    Every(period, work);
  });
}

void JobWorld::RunUntil(const std::function<bool()>& condition) {
  while (broken_.ok() && !condition()) Advance();
}

void JobWorld::Advance() {
  network_.RunNext();
  root_.Settle();
  if (root_.running() && root_.disk.powered_off()) EndRoot();
  root_.Flush();
  branch_.Flush();
  for (const auto& node : nodes_) {
    if (node->running() && node->disk.powered_off()) EndNode(*node);
  }
}

// A node prefers one relay, and changes now and then.
JobRelay& JobWorld::ParentOf(const JobNode& node) {
  const bool by_branch = node.name() != "n1";
  return by_branch != OneIn(10) ? static_cast<JobRelay&>(branch_) : static_cast<JobRelay&>(root_);
}

// ---- Operators ----

void JobWorld::SubmitJob() {
  if (!root_.running() || root_.board().running() >= kMaxOpen) return;
  const std::string id = absl::StrFormat("j%d", ++submitted_);
  JobHistory& job = jobs_[id];
  job.submitted = network_.now();
  for (const auto& node : nodes_) {
    if (OneIn(2)) job.nodes.push_back(node->name());
  }
  if (job.nodes.empty()) job.nodes.push_back("n1");
  const absl::Status submitted =
      root_.board().Submit(RequestOf(id, job.nodes, root_.clock.Now()), kSubmitter).status();
  job.accepted = submitted.ok();
  if (job.accepted) job.watcher = std::make_unique<JobWatcher>(network_, root_, id);
  root_.Settle();
  Log(absl::StrCat("submit ", id), submitted);
}

void JobWorld::CancelJob() {
  if (!root_.running() || submitted_ == 0) return;
  const std::string id = absl::StrFormat("j%d", 1 + Chance(submitted_));
  const absl::Status cancelled = root_.board().Cancel(id, "spiffe://fleet.test/user/o").status();
  root_.Settle();
  Log(absl::StrCat("cancel ", id), cancelled);
}

void JobWorld::FollowJobs() {
  for (auto& [id, job] : jobs_) {
    if (!root_.running() || root_.disk.powered_off()) return;
    if (job.watcher != nullptr) job.watcher->Follow();
  }
}

void JobWorld::DropWatchers() {
  for (auto& [id, job] : jobs_) {
    if (job.watcher != nullptr) job.watcher->DropSource();
  }
}

// ---- Checks ----

absl::Status JobWorld::CheckJobs() {
  if (!root_.running() || root_.disk.powered_off()) return absl::OkStatus();
  for (auto& [id, job] : jobs_) RETURN_IF_ERROR(CheckJob(id, job));
  return absl::OkStatus();
}

absl::Status JobWorld::CheckJob(const std::string& id, JobHistory& job) {
  const auto view = root_.board().Get(id);
  if (!view.ok()) {
    // A failed read leaves it out until the next start.
    return job.accepted && !root_.faulty
               ? Broken(absl::StrCat("job ", id, " is lost: ", view.status().ToString()))
               : absl::OkStatus();
  }
  std::vector<std::string> records;
  std::map<std::string, std::vector<v1::JobRecord>> of_nodes;
  const auto read = Journal::Read(root_.disk, view->records_path,
                                  [&](std::string_view bytes, int64_t position) -> absl::Status {
                                    if (position >= view->end) return absl::OkStatus();
                                    v1::JobRecord record;
                                    RETURN_IF_ERROR(ParseRecord(bytes, &record));
                                    records.emplace_back(bytes);
                                    of_nodes[record.node()].push_back(std::move(record));
                                    return absl::OkStatus();
                                  });
  if (!read.ok()) {
    return root_.faulty ? absl::OkStatus()
                        : Broken(absl::StrCat("the records of job ", id,
                                              " cannot be read: ", read.status().ToString()));
  }
  const bool kept = records.size() >= job.records.size() &&
                    std::equal(job.records.begin(), job.records.end(), records.begin());
  if (!kept) return Broken(absl::StrCat("stored records of job ", id, " are lost"));
  job.records = std::move(records);
  if (job.watcher != nullptr) {
    RETURN_IF_ERROR(job.watcher->CheckStored(job.records));
    RETURN_IF_ERROR(job.watcher->CheckOutcomes(job.nodes));
  }
  for (const std::string& node : job.nodes) {
    RETURN_IF_ERROR(CheckNode(id, job, node, of_nodes[node]));
  }
  return absl::OkStatus();
}

absl::Status JobWorld::CheckNode(const std::string& id, JobHistory& job, const std::string& node,
                                 const std::vector<v1::JobRecord>& records) {
  const auto found = executions_.find({id, node});
  const Execution execution = found == executions_.end() ? Execution() : found->second;
  const std::string where = absl::StrCat("job ", id, " on ", node);
  if (execution.starts > 1) return Broken(absl::StrCat(where, " has run twice"));
  if (execution.starts > 0 && execution.started > job.submitted + kBeginWithin + kTransit) {
    return Broken(absl::StrCat(where, " has started after its time"));
  }
  std::string output;
  int64_t sequence = 0;
  for (const v1::JobRecord& record : records) {
    const bool by_node = record.sequence() > 0;
    if (record.has_output()) output += record.output().data();
    if (by_node && !record.has_final() && record.sequence() <= sequence) {
      return Broken(absl::StrCat(where, ": record ", record.sequence(), " follows ", sequence));
    }
    sequence = std::max(sequence, record.sequence());
    if (!record.has_final()) continue;
    if (record.final().reason() == "REPLAYED") {
      return Broken(absl::StrCat(where, ": its outcome was acknowledged and is lost"));
    }
    if (SaysNeverStarted(record)) job.never_ran[node] = record.ShortDebugString();
    if (by_node && record.final().outcome() == v1::JOB_OUTCOME_EXITED &&
        (output != execution.output || !execution.exited)) {
      return Broken(absl::StrCat(where, " has exited, and its output is not complete"));
    }
  }
  if (job.never_ran.contains(node) && execution.starts > 0) {
    return Broken(absl::StrCat(
        where, " has run, and its outcome says that it did not: ", job.never_ran[node]));
  }
  if (!absl::StartsWith(execution.output, output)) {
    return Broken(absl::StrCat(where, ": the output is not that of the command"));
  }
  return absl::OkStatus();
}

void JobWorld::Break(const absl::Status& broken) {
  if (broken_.ok() && !broken.ok()) broken_ = broken;
}

void JobWorld::Log(std::string_view what, const absl::Status& outcome) {
  absl::StrAppend(&log_, absl::FormatDuration(network_.now()), " ", root_.disk.changes(), " ",
                  ToAbsl(what), " ", outcome.message(), "\n");
}

}  // namespace muster::testing
