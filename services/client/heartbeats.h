// A sender's heartbeats: what is said, when, and what becomes of lost connections. How they travel
// is another's business (heartbeat_stream.h, https_heartbeats.h).
#ifndef MUSTER_SERVICES_CLIENT_HEARTBEATS_H_
#define MUSTER_SERVICES_CLIENT_HEARTBEATS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/client/beat_schedule.h"
#include "services/client/sender_activity.h"
#include "services/common/base/mutex.h"

namespace muster::client {

// One heartbeat.
struct Beat {
  int64_t sequence = 0;
  absl::Duration uptime;
  absl::Time time;
  // Absent: as before.
  std::optional<Activity> news;
  bool goodbye = false;
};

struct BeatAnswer {
  int64_t sequence = 0;
  std::optional<absl::Duration> interval;
  std::optional<absl::Time> time;  // the server's
  bool probe = false;              // no answer, but a question: a beat is wanted now
};

// What a connection tells, from any thread.
class BeatInbox {
 public:
  virtual ~BeatInbox() = default;
  virtual void Answered(const BeatAnswer& answer) = 0;
  // The beat before is on its way: another may be sent.
  virtual void Writable() = 0;
  // The connection has ended, even if with OK. UNIMPLEMENTED: the server knows no heartbeats.
  virtual void Ended(const absl::Status& status) = 0;
};

// One connection to a server. Its destructor ends it, after a goodbye within 2 s of it, and returns
// when the inbox is not called any more. Used by one thread.
class BeatConnection {
 public:
  virtual ~BeatConnection() = default;

  // Not before the inbox was told that it is writable; the first at once.
  virtual void Send(const Beat& beat) = 0;
};

// `stop` ends what a connection waits for.
using BeatDialler =
    std::function<std::unique_ptr<BeatConnection>(BeatInbox& inbox, const std::stop_token& stop)>;

// Beats from its construction to its destruction, which says goodbye. Thread-safe.
class Heartbeats final : private BeatInbox {
 public:
  // `watch` is called from the thread of this object as HeartbeatWatcher says. `activity` outlives
  // this object.
  Heartbeats(SenderActivity& activity, BeatDialler dial,
             std::function<void(const absl::Status&)> watch);
  ~Heartbeats() override;

  absl::Status status() const;
  std::optional<absl::Duration> clock_offset() const;

 private:
  void Answered(const BeatAnswer& answer) ABSL_LOCKS_EXCLUDED(mutex_) override;
  void Writable() ABSL_LOCKS_EXCLUDED(mutex_) override;
  void Ended(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_) override;

  void Run(const std::stop_token& stop);
  // One connection, to its end.
  absl::Status Live(const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether to connect again, after a wait.
  bool AfterEnd(const absl::Status& why, const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mutex_);
  // Sends the beat that is due.
  void SendBeat(BeatConnection& connection, bool goodbye) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Notes how it goes, and tells the watcher of a change.
  void Note(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  SenderActivity& activity_;
  const BeatDialler dial_;
  const std::function<void(const absl::Status&)> watch_;
  ReconnectWait reconnect_;  // of the thread

  mutable Mutex mutex_;
  StoppableCondVar changed_;
  BeatSchedule schedule_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> ended_ ABSL_GUARDED_BY(mutex_);
  bool writable_ ABSL_GUARDED_BY(mutex_) = true;
  bool answered_ ABSL_GUARDED_BY(mutex_) = false;  // since it was last looked at
  uint64_t events_ ABSL_GUARDED_BY(mutex_) = 0;
  bool all_is_news_ ABSL_GUARDED_BY(mutex_) = true;    // a new connection
  uint64_t told_version_ ABSL_GUARDED_BY(mutex_) = 0;  // the newest that was sent
  int64_t told_sequence_ ABSL_GUARDED_BY(mutex_) = 0;  // with which beat
  std::optional<absl::Duration> clock_offset_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;  // as the watcher was told last
  std::jthread thread_;                        // the last: it uses the others
};

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_HEARTBEATS_H_
