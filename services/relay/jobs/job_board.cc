#include "services/relay/jobs/job_board.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/jobs.h"
#include "services/common/jobs/job_record.h"
#include "services/common/rpc/proto_time.h"
#include "services/relay/jobs/job_folder.h"

namespace muster {
namespace {

// Cancels of a finished job are sent for this time after its deadline.
constexpr absl::Duration kKeepCancels = absl::Seconds(30);

}  // namespace

JobBoard::JobBoard(Options options, FileOps& files, Topology& tree, CommandDispatcher& dispatcher,
                   const Clock& clock)
    : options_(std::move(options)),
      files_(files),
      tree_(tree),
      dispatcher_(dispatcher),
      clock_(clock) {}

JobBoard::~JobBoard() {
  writer_.request_stop();
  work_.NotifyAll();
  if (writer_.joinable()) writer_.join();
}

absl::StatusOr<std::unique_ptr<JobBoard>> JobBoard::Open(Options options, FileOps& files,
                                                         Topology& tree,
                                                         CommandDispatcher& dispatcher,
                                                         const Clock& clock) {
  std::unique_ptr<JobBoard> board(new JobBoard(std::move(options), files, tree, dispatcher, clock));
  RETURN_IF_ERROR(board->Load());
  board->writer_ = std::jthread([b = board.get()](const std::stop_token& stop) { b->Write(stop); });
  return board;
}

absl::Status JobBoard::Load() {
  RETURN_IF_ERROR(MakeFolders(files_, options_.folder));
  ASSIGN_OR_RETURN(const auto listed, files_.List(options_.folder));
  for (const FolderEntry& entry : listed) {
    if (entry.type != FileType::kFolder) continue;
    const std::string& id = entry.name;
    if (absl::Status s = LoadJob(id); !s.ok()) {
      // One job that cannot be read must not take the others along; its files stay for a person.
      Log(LogLevel::kError, "a job cannot be read and is left out", {{"job", id}, {"error", s}});
    }
  }
  return absl::OkStatus();
}

absl::Status JobBoard::LoadJob(const std::string& id) {
  auto entry = std::make_unique<Entry>();
  entry->folder = absl::StrCat(options_.folder, "/", id);
  auto stored = JobFolder::Read(files_, entry->folder);
  if (absl::IsNotFound(stored.status())) return RemoveTree(files_, entry->folder);
  if (!stored.ok()) return stored.status();
  entry->job = std::move(stored->job);
  entry->end = stored->records_end;
  if (stored->ended) {
    CancelAbandoned(*std::move(stored), *entry);
  } else {
    RETURN_IF_ERROR(Resume(*std::move(stored), entry.get()));
  }
  MutexLock lock(mutex_);
  Entry& kept = *entry;
  Insert(id, std::move(entry));
  if (kept.state != nullptr) GoOn(id, kept);
  return absl::OkStatus();
}

// Brings the command of a job of an earlier process back to where it was: every target without a
// final record of its own is known to the dispatcher.
void JobBoard::GoOn(const std::string& id, Entry& entry) {
  Release(entry);
  JobRoutes routes = RoutesOf(id, *entry.state);
  routes.Withdraw(entry.state->Abandoned());
  if (entry.state->cancelled()) AddMade(id, entry.state->Cancel(clock_.Now(), routes));
}

void JobBoard::Insert(const std::string& id, std::unique_ptr<Entry> entry) {
  by_time_.emplace(absl::ToUnixMicros(FromProto(entry->job.submit_time())), id);
  if (entry->state != nullptr) ++running_;
  jobs_[id] = std::move(entry);
}

// Replays a running job.
absl::Status JobBoard::Resume(StoredJob stored, Entry* entry) {
  ASSIGN_OR_RETURN(entry->files, JobFolder::Open(files_, entry->folder));
  ASSIGN_OR_RETURN(entry->request, ReadJobRequest(std::move(stored.request)));
  entry->state = std::make_unique<JobState>(
      PlanOf(entry->request, entry->job, std::move(stored.targets), options_.max_output));
  ASSIGN_OR_RETURN(entry->log, OpenRecords(files_, entry->folder, [&](const v1::JobRecord& record) {
                     entry->state->Replay(record);
                   }));
  entry->end = entry->log->end();
  if (stored.cancelled) entry->state->SetCancelled();
  entry->state->SetResumed();
  return absl::OkStatus();
}

// A finished job may still run on nodes that the root relay gave up.
void JobBoard::CancelAbandoned(StoredJob stored, const Entry& entry) {
  const absl::Time deadline = FromProto(entry.job.deadline());
  if (clock_.Now() > deadline + kKeepCancels) return;
  auto request = ReadJobRequest(std::move(stored.request));
  if (!request.ok()) return;
  JobState state(PlanOf(*request, entry.job, std::move(stored.targets), options_.max_output));
  v1::JobRecord record;
  const auto read =
      Journal::Read(files_, RecordsPath(entry.folder), [&](std::string_view bytes, int64_t) {
        RETURN_IF_ERROR(ParseRecord(bytes, &record));
        state.Replay(record);
        return absl::OkStatus();
      });
  if (!read.ok()) {
    Log(LogLevel::kError, "the records of a finished job cannot be read",
        {{"job", entry.job.job()}, {"error", read.status()}});
  }
  RoutesOf(entry.job.job(), state).Withdraw(state.Abandoned());
}

absl::Status JobBoard::Reserve(const std::string& job) {
  MutexLock lock(mutex_);
  if (running_ + static_cast<int64_t>(creating_.size()) >= options_.max_running) {
    return errors::TooManyJobs(options_.max_running);
  }
  if (!creating_.insert(job).second) return errors::JobExists(job);
  return absl::OkStatus();
}

absl::StatusOr<v1::Job> JobBoard::Submit(JobRequest request, const std::string& submitter) {
  const std::string id = request.command.job();
  if (const auto there = Get(id); there.ok()) {
    ASSIGN_OR_RETURN(const auto stored,
                     JobFolder::Read(files_, absl::StrCat(options_.folder, "/", id)));
    // What is signed says which nodes it is for.
    const bool same = stored.request.command().command() == request.message.command().command();
    return same ? absl::StatusOr<v1::Job>(there->job) : errors::JobExists(id);
  }
  RETURN_IF_ERROR(Reserve(id));
  auto entry = std::make_unique<Entry>();
  entry->folder = absl::StrCat(options_.folder, "/", id);
  entry->job = NewJob(request, submitter, clock_.Now());
  std::vector<std::string> targets =
      request.targets == nullptr ? tree_.Nodes() : request.targets->names();
  JobState::Plan plan = PlanOf(request, entry->job, std::move(targets), options_.max_output);
  auto files = JobFolder::Create(files_, entry->folder, request.message, entry->job, plan.targets,
                                 JobState::MaxLogSize(plan), &entry->log);
  entry->request = std::move(request);
  MutexLock lock(mutex_);
  creating_.erase(id);
  if (!files.ok()) return files.status();
  entry->files = *std::move(files);
  entry->end = entry->log->end();
  entry->state = std::make_unique<JobState>(std::move(plan));
  return Begin(id, std::move(entry));
}

absl::StatusOr<v1::Job> JobBoard::Begin(const std::string& id, std::unique_ptr<Entry> entry) {
  std::vector<v1::JobRecord> unknown = entry->state->EndUnknown(
      clock_.Now(), [&](std::string_view node) { return tree_.Find(node).has_value(); });
  Entry& kept = *entry;
  Insert(id, std::move(entry));
  AddMade(id, std::move(unknown));
  Release(kept);
  work_.NotifyOne();
  return Describe(kept);
}

JobRoutes JobBoard::RoutesOf(const std::string& id, const JobState& state) const {
  const absl::Time end = FromProto(state.plan().job.deadline());
  return JobRoutes(tree_, dispatcher_, id, std::max(end - clock_.Now(), absl::ZeroDuration()));
}

// Gives the targets whose turn it is to the dispatcher.
void JobBoard::Release(Entry& entry) {
  const absl::Time now = clock_.Now();
  JobState& state = *entry.state;
  const JobState::Plan& plan = state.plan();
  // After its time to start, a job of an earlier process is dispatched only to be cancelled.
  const bool may_be_out = state.resumed() && plan.parallel == 0;
  if (now >= plan.begin_until && !may_be_out) return;
  const std::string& id = plan.job.job();
  const std::vector<std::string> nodes = state.Release(now, RoutesOf(id, state));
  if (nodes.empty()) return;
  const absl::Time wait_until =
      plan.parallel == 0 ? plan.wait_until : std::max(plan.wait_until, now + plan.wait);
  dispatcher_.Dispatch(entry.request.For(nodes, plan.begin_until - now, wait_until - now),
                       state.resumed());
}

v1::Job JobBoard::Describe(const Entry& entry) const {
  if (entry.state == nullptr) return entry.job;
  v1::Job job = entry.state->Describe();
  // It has ended when that is stored.
  job.set_state(v1::JOB_STATE_RUNNING);
  return job;
}

absl::StatusOr<JobBoard::Entry*> JobBoard::Find(const std::string& job) const {
  const auto it = jobs_.find(job);
  if (it == jobs_.end()) return errors::JobNotFound(job);
  return it->second.get();
}

absl::StatusOr<JobView> JobBoard::Get(const std::string& job) const {
  MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(const auto entry, Find(job));
  return JobView{Describe(*entry), RecordsPath(entry->folder), entry->end};
}

std::vector<v1::Job> JobBoard::List(const std::string& before, size_t limit) const {
  std::vector<v1::Job> jobs;
  MutexLock lock(mutex_);
  auto it = by_time_.end();
  if (const auto from = jobs_.find(before); from != jobs_.end()) {
    it = by_time_.lower_bound(
        {absl::ToUnixMicros(FromProto(from->second->job.submit_time())), before});
  }
  while (it != by_time_.begin() && jobs.size() < limit) {
    --it;
    jobs.push_back(Describe(*jobs_.at(it->second)));
  }
  return jobs;
}

absl::StatusOr<v1::Job> JobBoard::Cancel(const std::string& job) {
  std::shared_ptr<JobFolder> files;
  {
    MutexLock lock(mutex_);
    ASSIGN_OR_RETURN(const auto entry, Find(job));
    if (entry->state == nullptr) return Describe(*entry);
    files = entry->files;
  }
  RETURN_IF_ERROR(files->MarkCancelled());
  MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(const auto entry, Find(job));
  if (entry->state == nullptr) return Describe(*entry);
  JobRoutes routes = RoutesOf(job, *entry->state);
  AddMade(job, entry->state->Cancel(clock_.Now(), routes));
  work_.NotifyOne();
  return Describe(*entry);
}

absl::StatusOr<uint64_t> JobBoard::Watch(const std::string& job, std::function<void()> wake) {
  MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(const auto entry, Find(job));
  entry->watches[++watches_] = std::move(wake);
  return watches_;
}

void JobBoard::StopWatch(const std::string& job, uint64_t watch) {
  MutexLock lock(mutex_);
  if (const auto entry = Find(job); entry.ok()) (*entry)->watches.erase(watch);
}

void JobBoard::Receive(v1::JobRecords records, Done done) {
  auto& all = *records.mutable_records();
  all.erase(
      std::remove_if(all.begin(), all.end(),
                     [](const v1::JobRecord& record) {
                       const absl::Status status = ValidateJobRecord(record);
                       if (status.ok()) return false;
                       Log(LogLevel::kWarning, "a record of a job is dropped",
                           {{"job", record.job()}, {"node", record.node()}, {"error", status}});
                       return true;
                     }),
      all.end());
  MutexLock lock(mutex_);
  batches_.push_back({std::move(records), std::move(done)});
  work_.NotifyOne();
}

void JobBoard::OnReachable() {
  MutexLock lock(mutex_);
  reachable_ = true;
  work_.NotifyOne();
}

void JobBoard::RelayChanged(const std::string& relay, bool attached) {
  MutexLock lock(mutex_);
  relays_.emplace_back(relay, attached);
  work_.NotifyOne();
}

int64_t JobBoard::running() const {
  MutexLock lock(mutex_);
  return running_;
}

}  // namespace muster
