// Decides what missing heartbeats mean: presence, doubt, and evidence from the kernel.
#ifndef MUSTER_SERVICES_STATUS_HEARTBEATS_SILENCE_JUDGE_H_
#define MUSTER_SERVICES_STATUS_HEARTBEATS_SILENCE_JUDGE_H_

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/status/heartbeats/registry_metrics.h"
#include "services/status/heartbeats/relay_table.h"
#include "services/status/heartbeats/sender_table.h"
#include "services/status/heartbeats/service_doubt.h"
#include "services/status/heartbeats/tcp_view.h"

namespace muster {

// A sender without a heartbeat for two intervals is late, for three suspect, for lost_after lost.
// It is doubted instead after a hold-up of the service, while many senders are silent, and while
// its relay is disconnected or silent itself. Calls of Tick must not overlap; the other functions
// are thread-safe.
class SilenceJudge {
 public:
  struct Options {
    absl::Duration tick;
    absl::Duration lost_after;
    absl::Duration forget_after;
    ServiceDoubt::Options doubt;
  };

  // Returns how the kernel sees these connections; empty if it cannot be asked.
  using Query = std::function<std::vector<TcpState>(const std::vector<TcpPeer>&)>;

  // The references outlive this object.
  SilenceJudge(const Options& options, const Clock& clock, SenderTable& senders,
               const RelayTable& relays, Query query, RegistryMetrics& metrics);

  // Judges the senders that are due. Adds what follows to `effects`.
  void Tick(SenderEffects* effects);

  // The connection of the sender has ended from its side. A later tick asks the kernel why.
  void AddClosed(std::shared_ptr<SenderEntry> entry) ABSL_LOCKS_EXCLUDED(closed_mutex_);

  // Returns why the service doubts its network or machine; empty if it does not.
  std::string Doubt() const ABSL_LOCKS_EXCLUDED(doubt_mutex_);

 private:
  using Shard = SenderTable::Shard;

  std::vector<std::shared_ptr<SenderEntry>> FindSilent(absl::Duration now, SenderEffects* effects)
      ABSL_LOCKS_EXCLUDED(doubt_mutex_);
  bool Defer(Shard& shard, SenderEntry& entry, absl::Duration now, SenderEffects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex);
  void AwaitOther(Shard& shard, SenderEntry& entry, absl::Duration now, SenderEffects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex);
  bool IsExplained(const SenderEntry& entry, absl::Duration now) const;
  void Judge(SenderEntry& entry, absl::Duration now, SenderEffects* effects);
  void JudgeOverdue(Shard& shard, SenderEntry& entry, absl::Duration now, SenderEffects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex);
  void JudgeSilent(Shard& shard, SenderEntry& entry, absl::Duration now, SenderEffects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex);
  void SetSilentPresence(Shard& shard, SenderEntry& entry, absl::Duration now,
                         SenderEffects* effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex);
  void DoubtNewlyLate(absl::Duration now, SenderEffects* effects);
  void CheckConnections(absl::Duration now, SenderEffects* effects)
      ABSL_LOCKS_EXCLUDED(closed_mutex_);
  void ApplyState(Shard& shard, SenderEntry& entry, const TcpState& state, SenderEffects* effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.mutex);
  void Measure(absl::Duration lag);

  const Options options_;
  const Clock& clock_;
  SenderTable& senders_;
  const RelayTable& relays_;
  const Query query_;
  RegistryMetrics& metrics_;

  // Used by Tick alone, which changes the doubt with doubt_mutex_ held.
  absl::Duration last_tick_;
  ServiceDoubt service_doubt_;
  // Senders that turned late within the last interval, and when.
  std::deque<std::pair<absl::Duration, std::weak_ptr<SenderEntry>>> newly_late_;

  mutable Mutex doubt_mutex_;
  Mutex closed_mutex_;
  // Senders whose connection has ended, and when.
  std::vector<std::pair<absl::Duration, std::shared_ptr<SenderEntry>>> closed_
      ABSL_GUARDED_BY(closed_mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_HEARTBEATS_SILENCE_JUDGE_H_
