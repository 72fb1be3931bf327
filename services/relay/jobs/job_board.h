// All jobs of the fleet, at the relay at the centre: what was asked for, how far it is, what came
// of it.
//
// Each job has a folder (job_folder.h). A record counts, and may be forgotten by its node, when it
// is durable.
#ifndef MUSTER_SERVICES_RELAY_JOBS_JOB_BOARD_H_
#define MUSTER_SERVICES_RELAY_JOBS_JOB_BOARD_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/mutex.h"
#include "services/common/journal/journal.h"
#include "services/relay/jobs/command_dispatcher.h"
#include "services/relay/jobs/job_folder.h"
#include "services/relay/jobs/job_request.h"
#include "services/relay/jobs/job_state.h"
#include "services/relay/jobs/record_sink.h"
#include "services/relay/jobs/target_routes.h"
#include "services/relay/topology/topology.h"

namespace muster {

// One job, as those who watch it see it.
struct JobView {
  v1::Job job;
  std::string records_path;
  int64_t end = 0;  // of what is durable
};

// Thread-safe. One thread of its own writes, so that many records share a sync.
class JobBoard : public RecordSink {
 public:
  struct Options {
    std::string folder;
    int64_t max_running = 1'000;
    int64_t max_output = int64_t{256} << 20;         // bytes that are kept of one job
    absl::Duration retention = absl::Hours(24 * 7);  // of jobs that have ended
    int64_t max_kept = 10'000;                       // of those
  };

  // Reads what is there and goes on with it.
  static absl::StatusOr<std::unique_ptr<JobBoard>> Open(Options options, FileOps& files,
                                                        Topology& tree,
                                                        CommandDispatcher& dispatcher,
                                                        const Clock& clock);
  ~JobBoard() override;

  // `submitter`: the URI of who signed it. JOB_EXISTS, TOO_MANY_JOBS, DISK_FULL.
  absl::StatusOr<v1::Job> Submit(JobRequest request, const std::string& submitter);
  // JOB_NOT_FOUND, as the two that follow.
  absl::StatusOr<JobView> Get(const std::string& job) const;
  absl::StatusOr<v1::Job> Cancel(const std::string& job);
  // `wake` is called after every change of the job, also later than StopWatch.
  absl::StatusOr<uint64_t> Watch(const std::string& job, std::function<void()> wake);
  void StopWatch(const std::string& job, uint64_t watch);

  // The newest first, from the first that is older than `before` (empty: the newest).
  std::vector<v1::Job> List(const std::string& before, size_t limit) const;

  // RecordSink. Drops records that ValidateJobRecord refuses: none is stored or acknowledged.
  void Receive(v1::JobRecords records, Done done) override;

  // From the tree.
  void OnReachable();
  void RelayChanged(const std::string& relay, bool attached);

  int64_t running() const;

 private:
  struct Entry {
    std::string folder;
    v1::Job job;                      // of one that has ended; else `state` says
    std::unique_ptr<JobState> state;  // while it runs, as the three that follow
    std::unique_ptr<Journal> log;     // the writer's alone
    std::shared_ptr<JobFolder> files;
    JobRequest request;
    int64_t end = 0;  // durable
    std::map<uint64_t, std::function<void()>> watches;
  };
  struct Batch {
    v1::JobRecords records;
    Done done;
  };
  // An acknowledgement that a node has not got yet.
  struct Owed {
    int64_t sequence = 0;
    int64_t records = 0;  // since the last, as the next
    int64_t bytes = 0;    // of output
  };
  // Records of one job that the writer is to store.
  using ToStore = std::map<std::string, std::vector<v1::JobRecord>>;

  JobBoard(Options options, FileOps& files, Topology& tree, CommandDispatcher& dispatcher,
           const Clock& clock);

  absl::Status Load();
  absl::Status LoadJob(const std::string& id);
  absl::Status Resume(StoredJob stored, Entry* entry);
  absl::Status Reserve(const std::string& job);
  absl::StatusOr<v1::Job> Begin(const std::string& id, std::unique_ptr<Entry> entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::StatusOr<Entry*> Find(const std::string& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  v1::Job Describe(const Entry& entry) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Insert(const std::string& id, std::unique_ptr<Entry> entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  JobRoutes RoutesOf(const std::string& id, const JobState& state) const;
  void GoOn(const std::string& id, Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CancelAbandoned(StoredJob stored, const Entry& entry);
  void Release(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddMade(const std::string& job, std::vector<v1::JobRecord> records)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellRelays() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TickAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ToStore TakeBatches(std::deque<Batch>& batches) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Publish(const ToStore& stored, std::vector<std::string>* ended)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<std::string> TakeOld() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void Write(const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mutex_);
  bool Store(const ToStore& records, const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mutex_);
  void Acknowledge(const std::deque<Batch>& batches) ABSL_LOCKS_EXCLUDED(mutex_);
  void Owe(const v1::JobRecord& record, v1::RecordsAck* now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Finish(const std::string& id) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  FileOps& files_;
  Topology& tree_;
  CommandDispatcher& dispatcher_;
  const Clock& clock_;
  // The writer's alone: by job and node.
  std::map<std::pair<std::string, std::string>, Owed> owed_;
  absl::Duration owed_since_;  // monotonic
  mutable Mutex mutex_;
  CondVar work_;
  std::map<std::string, std::unique_ptr<Entry>> jobs_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> creating_ ABSL_GUARDED_BY(mutex_);
  // Of submission, in microseconds.
  std::set<std::pair<int64_t, std::string>> by_time_ ABSL_GUARDED_BY(mutex_);
  std::deque<Batch> batches_ ABSL_GUARDED_BY(mutex_);
  ToStore made_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<std::string, bool>> relays_ ABSL_GUARDED_BY(mutex_);
  bool reachable_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t watches_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  std::jthread writer_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_JOB_BOARD_H_
