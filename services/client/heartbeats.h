// A sender's heartbeats: their content and times, and reconnection. The transports are
// heartbeat_stream.h and https_heartbeats.h.
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
#include "services/client/heartbeat_schedule.h"
#include "services/client/sender_activity.h"
#include "services/common/base/backoff.h"
#include "services/common/base/mutex.h"

namespace muster::client {

// One heartbeat.
struct Heartbeat {
  int64_t sequence = 0;
  absl::Duration uptime;
  absl::Time time;
  // Absent: unchanged.
  std::optional<Activity> activity;
  bool goodbye = false;
};

struct HeartbeatAnswer {
  int64_t sequence = 0;
  std::optional<absl::Duration> interval;
  std::optional<absl::Time> time;  // the server's time
  bool probe = false;              // not an answer but a request for a heartbeat now
};

// Receives the events of a connection, from any thread.
class HeartbeatInbox {
 public:
  virtual ~HeartbeatInbox() = default;
  virtual void OnAnswer(const HeartbeatAnswer& answer) = 0;
  // The previous heartbeat was sent: another one may follow.
  virtual void OnWritable() = 0;
  // The connection has ended, possibly with OK. UNIMPLEMENTED: the server does not support
  // heartbeats.
  virtual void OnEnd(const absl::Status& status) = 0;
};

// One connection to a server. Its destructor ends it, after a goodbye of at most 2 s, and returns
// when the inbox is no longer called. Used by one thread.
class HeartbeatConnection {
 public:
  virtual ~HeartbeatConnection() = default;

  // May be called after the inbox received OnWritable; the first time immediately.
  virtual void Send(const Heartbeat& heartbeat) = 0;
};

// `stop` ends the waits of the connection.
using HeartbeatDialer = std::function<std::unique_ptr<HeartbeatConnection>(
    HeartbeatInbox& inbox, const std::stop_token& stop)>;

// Sends heartbeats from its construction to its destruction, which sends a goodbye. Thread-safe.
class Heartbeats final : private HeartbeatInbox {
 public:
  // Calls `watch` on the thread of this object, as HeartbeatWatcher describes. `activity` must
  // outlive this object.
  Heartbeats(SenderActivity& activity, HeartbeatDialer dial,
             std::function<void(const absl::Status&)> watch);
  ~Heartbeats() override;

  absl::Status status() const;
  std::optional<absl::Duration> clock_offset() const;

 private:
  void OnAnswer(const HeartbeatAnswer& answer) ABSL_LOCKS_EXCLUDED(mutex_) override;
  void OnWritable() ABSL_LOCKS_EXCLUDED(mutex_) override;
  void OnEnd(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_) override;

  void Run(const std::stop_token& stop);
  // Runs one connection to its end.
  absl::Status RunConnection(const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns true if a new connection is needed, after a wait.
  bool AfterEnd(const absl::Status& why, const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mutex_);
  // Sends the due heartbeat.
  void SendDue(HeartbeatConnection& connection, bool goodbye) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Records the state, and reports a change to the watcher.
  void SetStatus(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  SenderActivity& activity_;
  const HeartbeatDialer dial_;
  const std::function<void(const absl::Status&)> watch_;
  // Used by the thread.
  Backoff reconnect_{kReconnectBackoff};
  Backoff unserved_{kUnservedBackoff};

  mutable Mutex mutex_;
  StoppableCondVar changed_;
  HeartbeatSchedule schedule_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> ended_ ABSL_GUARDED_BY(mutex_);
  bool writable_ ABSL_GUARDED_BY(mutex_) = true;
  bool answered_ ABSL_GUARDED_BY(mutex_) = false;  // since the last check
  uint64_t events_ ABSL_GUARDED_BY(mutex_) = 0;
  bool send_all_ ABSL_GUARDED_BY(mutex_) = true;       // a new connection
  uint64_t sent_version_ ABSL_GUARDED_BY(mutex_) = 0;  // the newest version that was sent
  int64_t sent_sequence_ ABSL_GUARDED_BY(mutex_) = 0;  // the heartbeat that contained it
  std::optional<absl::Duration> clock_offset_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  // The last report to the watcher.
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;
  bool duplicate_ ABSL_GUARDED_BY(mutex_) = false;
  std::jthread thread_;  // declared last: it uses the other members
};

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_HEARTBEATS_H_
