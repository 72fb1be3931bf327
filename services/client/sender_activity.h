// What a sender is at: what its heartbeats have to say.
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
  // A report that did not get through by itself.
  std::optional<Progress> progress;
  // Higher with each change.
  uint64_t version = 0;
};

// Thread-safe.
class SenderActivity {
 public:
  void SetPhase(Phase phase, std::string message);
  void SetFault(std::optional<Fault> fault);

  // Keeps a report for the next heartbeat, in place of one that is kept already. One of the append
  // form is not kept, since it might be counted twice; nor one that no service would take.
  void KeepProgress(const Progress& progress);
  // A newer report got through.
  void DropProgress();

  Activity Get() const;
  // The fleet knows what was said as of `version`: a report of then is not kept any longer.
  void Told(uint64_t version);

  // Called after each change, by the thread that made it; one listener, empty for none. When this
  // returns, the one before is not called any more.
  void Listen(std::function<void()> on_change);

 private:
  void Change(const std::function<void(Activity&)>& change) ABSL_LOCKS_EXCLUDED(mutex_);

  mutable Mutex mutex_;
  Activity activity_ ABSL_GUARDED_BY(mutex_);
  uint64_t progress_version_ ABSL_GUARDED_BY(mutex_) = 0;  // when activity_.progress was kept
  Mutex listener_mutex_;
  std::function<void()> listener_ ABSL_GUARDED_BY(listener_mutex_);
};

// Sets a phase, and brings back the one before at its end.
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
