// The current activity of a sender: the content of its heartbeats.
#ifndef MUSTER_SERVICES_CLIENT_SENDER_ACTIVITY_H_
#define MUSTER_SERVICES_CLIENT_SENDER_ACTIVITY_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "services/client/client.h"
#include "services/common/base/mutex.h"

namespace muster::client {

struct Activity {
  Phase phase = Phase::kWorking;
  std::string message;
  std::optional<Fault> fault;
  // A report whose own call failed.
  std::optional<Progress> progress;
  // Increases with each change.
  uint64_t version = 0;
};

// Thread-safe.
class SenderActivity {
 public:
  void SetPhase(Phase phase, std::string message);
  void SetFault(std::optional<Fault> fault);

  // Keeps a report for the next heartbeat and replaces an earlier one. Does not keep an append
  // report, which might be counted twice, or a report that no service accepts.
  void KeepProgress(const Progress& progress);
  // A newer report was delivered.
  void DropProgress();

  Activity Get() const;
  // The service has acknowledged the activity of `version`: its report is no longer kept.
  void HandleAck(uint64_t version);

  // Sets the listener, which runs after each change on the thread that made it; empty for none. The
  // previous listener is not called after this returns.
  void Listen(std::function<void()> on_change);

 private:
  void Change(const std::function<void(Activity&)>& change) ABSL_LOCKS_EXCLUDED(mutex_);

  mutable Mutex mutex_;
  Activity activity_ ABSL_GUARDED_BY(mutex_);
  // The version that added activity_.progress.
  uint64_t progress_version_ ABSL_GUARDED_BY(mutex_) = 0;
  Mutex listener_mutex_;
  std::function<void()> listener_ ABSL_GUARDED_BY(listener_mutex_);
};

// Sets a phase, and restores the previous one at its end.
class PhaseScope {
 public:
  PhaseScope(SenderActivity& activity, Phase phase) : activity_(activity), before_(activity.Get()) {
    activity_.SetPhase(phase, "");
  }
  ~PhaseScope() { activity_.SetPhase(before_.phase, before_.message); }
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  SenderActivity& activity_;
  const Activity before_;
};

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_SENDER_ACTIVITY_H_
