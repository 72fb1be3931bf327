// The durable state of the status service: senders, the history of nodes, the senders of pairs, and
// the last progress of each pair.
//
// A loss of this state does not harm results. So it is written late and in batches, and no caller
// waits for the disk.
#ifndef MUSTER_SERVICES_STATUS_STATUS_STORE_H_
#define MUSTER_SERVICES_STATUS_STATUS_STORE_H_

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/status.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/metrics.h"
#include "services/common/base/mutex.h"
#include "services/common/store/sqlite/connection.h"
#include "services/status/heartbeats/registry.h"

namespace muster {

// The first heartbeat for a pair.
struct ContactRecord {
  v1::ResultKey key;
  std::string uri;  // of the sender
  absl::Time first;
};

// Each kind of record waits in a queue of at most 100,000 records. Further ones are dropped and
// counted, but for senders, which are not taken. SQLite blocks, so a thread writes. Thread-safe.
class StatusStore : public NodeJournal {
 public:
  struct Pairs {
    std::vector<ContactRecord> contacts;
    std::vector<std::pair<v1::ResultKey, v1::Progress>> progress;
  };

  // Makes `folder`/status.db, or opens it. STORE_CORRUPT, STORE_TOO_NEW, STORE_NOT_ACCESSIBLE.
  static absl::StatusOr<std::unique_ptr<StatusStore>> Open(const std::string& folder,
                                                           const Clock& clock, Metrics& metrics);

  // Writes the queued records. Does not wait for the removal of runs, which may take minutes: the
  // next ForgetRunsExcept continues it.
  ~StatusStore() override;

  absl::StatusOr<std::vector<SenderRecord>> LoadSenders();
  // Returns what is stored about the pairs of the run. Waits for the disk.
  absl::StatusOr<Pairs> LoadPairs(const std::string& run);

  // These queue a record, which is written within about a second.
  void AddEvent(const std::string& node, v1::NodeEvent event) override;
  size_t PutSenders(std::vector<SenderRecord> senders) override;
  void PutContact(ContactRecord contact);
  // Replaces the queued progress of the pair.
  void PutProgress(const v1::ResultKey& key, v1::Progress progress);
  // Removes the contacts and the progress of a removed run.
  void ForgetRun(const std::string& run);
  // The same for all runs but these. Waits for the disk.
  void ForgetRunsExcept(const std::set<std::string>& runs);

  // Returns at most 200 events, the newest first. Waits for the disk.
  absl::StatusOr<std::vector<v1::NodeEvent>> Events(const std::string& node);

  // Waits until the records that were queued before are on the disk, and removed runs are removed.
  void Flush();

 private:
  using Key = std::tuple<std::string, std::string, std::string>;  // run, plugin, node

  struct Batch {
    std::vector<std::pair<std::string, v1::NodeEvent>> events;  // by node
    std::vector<SenderRecord> senders;
    std::vector<ContactRecord> contacts;
    std::map<Key, v1::Progress> progress;
    std::vector<std::string> gone;  // runs
    bool empty() const;
  };

  StatusStore(std::unique_ptr<sqlite::Connection> writer,
              std::unique_ptr<sqlite::Connection> reader, const Clock& clock, Metrics& metrics);

  void Work() ABSL_LOCKS_EXCLUDED(mutex_);
  void Write(const Batch& batch);
  void WriteEvents(const Batch& batch);
  void WritePairs(const Batch& batch);
  // Steps of these follow each other while no records wait and the store does not stop.
  void RemoveRuns() ABSL_LOCKS_EXCLUDED(mutex_);
  void ReturnSpace() ABSL_LOCKS_EXCLUDED(mutex_);
  bool RemoveSome(const std::string& run);
  void RemoveOld();
  bool Idle() ABSL_LOCKS_EXCLUDED(mutex_);
  bool Stopping() ABSL_LOCKS_EXCLUDED(mutex_);
  void HandleFailure(const char* what);
  template <typename T>
  void Queue(std::vector<T> Batch::* list, T record) ABSL_LOCKS_EXCLUDED(mutex_);

  const Clock& clock_;
  const Counter dropped_;
  const Counter failed_;
  const std::unique_ptr<sqlite::Connection> writer_;  // used by the thread alone once it runs
  Mutex reader_mutex_;
  const std::unique_ptr<sqlite::Connection> reader_ ABSL_GUARDED_BY(reader_mutex_);
  // Used by the thread.
  absl::Time removed_at_;
  std::deque<std::string> gone_;  // runs that are being removed

  Mutex mutex_;
  CondVar wake_;     // Flush or the end
  CondVar written_;  // all records are, and the runs are removed
  Batch waiting_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool flush_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_STATUS_STORE_H_
