#include "services/simulation/job_world.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
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

using Call = SimulatedDisk::Call;

constexpr int kNodes = 3;
constexpr int kMaxOpen = 4;  // jobs
constexpr char kSubmitter[] = "spiffe://f.muster/user/ann";
constexpr absl::Duration kBeginWithin = absl::Minutes(2);
constexpr absl::Duration kTimeLimit = absl::Minutes(3);
// A message may be in transit for so long.
constexpr absl::Duration kTransit = absl::Minutes(1);
constexpr absl::Duration kSettleLimit = absl::Minutes(20);

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
  if (!kept) return Broken(absl::StrCat("records of job ", id, " that were read are lost"));
  job.records = std::move(records);
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
  int finals = 0;
  for (const v1::JobRecord& record : records) {
    const bool by_node = record.sequence() > 0;
    if (record.has_output()) output += record.output().data();
    if (by_node && !record.has_final() && record.sequence() <= sequence) {
      return Broken(absl::StrCat(where, ": record ", record.sequence(), " follows ", sequence));
    }
    sequence = std::max(sequence, record.sequence());
    if (!record.has_final()) continue;
    if (by_node && ++finals > 1) return Broken(absl::StrCat(where, " has two outcomes"));
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

// ---- Faults ----

void JobWorld::Disturb() {
  if (calm_) return;
  network_.After(Soon(4'000), [this] { Disturb(); });
  JobNode& node = *nodes_[Chance(nodes_.size())];
  const std::string machines[] = {"root", "branch", "n1", "n2", "n3"};
  switch (Chance(11)) {
    case 0:
    case 1:
      if (root_.running()) EndRoot();
      break;
    case 2:
      RestartBranch();
      break;
    case 3:
    case 4:
      if (node.running()) EndNode(node);
      break;
    case 5:
    case 6:
      if (root_.running()) ScheduleFaults(root_.disk, root_.faulty);
      break;
    case 7:
    case 8:
      if (node.running()) ScheduleFaults(node.disk, node.faulty);
      break;
    case 9:
      network_.Partition(machines[Chance(std::size(machines))],
                         machines[Chance(std::size(machines))], Soon(OneIn(4) ? 60'000 : 5'000));
      Log("separate");
      break;
    default:
      network_.ResetOne();
  }
}

void JobWorld::ScheduleFaults(SimulatedDisk& disk, bool& faulty) {
  if (calm_) return;
  static constexpr Call kCalls[] = {
      Call::kSync,   Call::kSync, Call::kWrite,  Call::kWrite,    Call::kSyncFolder,
      Call::kCreate, Call::kOpen, Call::kRemove, Call::kTruncate, Call::kMakeFolder};
  faulty = true;
  if (OneIn(3)) {
    disk.FailAt(kCalls[Chance(std::size(kCalls))], 1 + static_cast<int>(Chance(10)),
                OneIn(3) ? ENOSPC : EIO);
  } else {
    disk.PowerOffAt(1 + static_cast<int>(Chance(25)));
  }
}

void JobWorld::StartRoot() {
  root_.faulty = false;
  if (OneIn(4)) ScheduleFaults(root_.disk, root_.faulty);
  const absl::Status started = root_.Start();
  Log("start root", started);
  if (started.ok()) return Break(CheckJobs());
  if (!root_.faulty || absl::IsDataLoss(started)) {
    return Break(Broken(absl::StrCat("the root relay does not start: ", started.ToString())));
  }
  EndRoot();
}

void JobWorld::EndRoot() {
  root_.disk.PowerOff();
  network_.Lose(root_.name());
  root_.Stop();
  EndProcess(root_.disk, root_.name());
  network_.After(Soon(3'000), [this] { StartRoot(); });
}

void JobWorld::StartNode(JobNode& node) {
  node.faulty = false;
  if (OneIn(4)) ScheduleFaults(node.disk, node.faulty);
  const absl::Status started = node.Start();
  Log(absl::StrCat("start ", node.name()), started);
  if (started.ok()) return;
  if (!node.faulty) {
    return Break(Broken(absl::StrCat(node.name(), " does not start: ", started.ToString())));
  }
  EndNode(node);
}

void JobWorld::EndNode(JobNode& node) {
  node.disk.PowerOff();
  network_.Lose(node.name());
  node.Stop();
  EndProcess(node.disk, node.name());
  network_.After(Soon(3'000), [this, &node] { StartNode(node); });
}

// By a kill, or by the loss of power.
void JobWorld::EndProcess(SimulatedDisk& disk, const std::string& name) {
  ++crashes_;
  const bool power_lost = OneIn(2);
  Log(absl::StrCat(power_lost ? "power lost: " : "killed: ", name));
  if (power_lost) {
    disk.Crash(chance_());
  } else {
    disk.Restart();
  }
}

void JobWorld::RestartBranch() {
  ++crashes_;
  Log("killed: branch");
  network_.Lose(branch_.name());
  branch_.Stop();
  branch_.Start();
}

// ---- The last phase ----

absl::Status JobWorld::Settle() {
  calm_ = true;
  network_.Calm();
  Log("no more faults");
  if (root_.running()) EndRoot();
  for (const auto& node : nodes_) {
    if (node->running()) EndNode(*node);
  }
  const absl::Duration end = network_.now() + kSettleLimit;
  RunUntil([&] { return network_.now() > end || IsSettled(); });
  RETURN_IF_ERROR(broken_);
  if (!IsSettled()) {
    std::string busy = absl::StrCat("root: ", root_.board().running());
    for (const auto& node : nodes_) absl::StrAppend(&busy, " ", node->name(), ": ", node->busy());
    return Broken(absl::StrCat("not every job ends in time; ", busy));
  }
  return CheckJobs();
}

bool JobWorld::IsSettled() {
  const auto is_idle = [](const auto& node) {
    return node->running() && !node->faulty && node->busy() == 0;
  };
  return root_.running() && !root_.faulty && root_.board().running() == 0 &&
         std::ranges::all_of(nodes_, is_idle);
}

void JobWorld::Break(const absl::Status& broken) {
  if (broken_.ok() && !broken.ok()) broken_ = broken;
}

void JobWorld::Log(std::string_view what, const absl::Status& outcome) {
  absl::StrAppend(&log_, absl::FormatDuration(network_.now()), " ", root_.disk.changes(), " ",
                  ToAbsl(what), " ", outcome.message(), "\n");
}

}  // namespace muster::testing
