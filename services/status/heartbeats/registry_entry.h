// What the registry keeps: for registry.cc and registry_tick.cc alone.
#ifndef MUSTER_SERVICES_STATUS_HEARTBEATS_REGISTRY_ENTRY_H_
#define MUSTER_SERVICES_STATUS_HEARTBEATS_REGISTRY_ENTRY_H_

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "services/common/base/mutex.h"
#include "services/common/base/strings.h"
#include "services/status/heartbeats/registry.h"
#include "services/status/heartbeats/timing_wheel.h"

namespace muster {

// Locks that beats take: far more than threads that beat at a time.
inline constexpr size_t kShards = 32;

// A sender with what only the registry knows of it. All but what Sender offers is guarded by the
// mutex of its shard.
class Registry::Entry : public Sender,
                        public WheelNode,
                        public std::enable_shared_from_this<Entry> {
 public:
  using Sender::Sender;

  uint64_t instance = 0;  // hash; 0: none said
  uint64_t boot = 0;      // hash; 0: none said
  absl::Duration began;   // when its process did, by our monotonic clock
  int64_t sequence = -1;  // the newest taken of this instance
  std::weak_ptr<SenderLink> line;
  TcpPeer peer;
  absl::Duration double_since;
  uint32_t stream = 0;      // counts its streams
  bool connected = false;   // the newest stream is open
  bool listed = false;      // in its shard
  bool changed = false;     // since it was last recorded
  bool looked = false;      // at its connection, since it was last heard
  bool unanswered = false;  // that look saw nothing acknowledged
  bool asked = false;       // the kernel answered when its connection was last looked at
  bool took_over = false;   // from a process that had not said goodbye, and has not beaten yet

  // When it is first worth a look at its connection: the next heartbeat is overdue, and the kernel,
  // which gives up after 15 s (rpc/server.cc), still has the connection.
  absl::Duration LookAfter() const { return std::min(interval() * 1.3, absl::Seconds(13)); }

  // Whether the other side closed its connection, by the kernel's word: so there is a way to it,
  // and its silence is no reason to doubt our own sight, however many are silent.
  bool ClosedByPeer() const { return asked && evidence() == Evidence::kClosed; }
};

struct Registry::Shard {
  struct Key {
    std::string_view uri;
    std::string_view node;
  };
  static Key KeyOf(const std::shared_ptr<Entry>& entry) { return {entry->uri(), entry->node()}; }
  static Key KeyOf(const Key& key) { return key; }

  struct Hash {
    using is_transparent = void;
    size_t operator()(const auto& key) const {
      const Key k = KeyOf(key);
      return std::hash<std::string_view>()(k.uri) * 31 + std::hash<std::string_view>()(k.node);
    }
  };
  struct Same {
    using is_transparent = void;
    bool operator()(const auto& a, const auto& b) const {
      const Key x = KeyOf(a);
      const Key y = KeyOf(b);
      return x.uri == y.uri && x.node == y.node;
    }
  };

  Mutex mutex;
  std::unordered_set<std::shared_ptr<Entry>, Hash, Same> entries ABSL_GUARDED_BY(mutex);
  TimingWheel wheel ABSL_GUARDED_BY(mutex);
};

// What is to be done once no lock is held.
struct Registry::Effects {
  std::vector<std::shared_ptr<const Sender>> changed;
  std::vector<std::pair<std::string, v1::NodeEvent>> events;  // by node
  std::vector<std::shared_ptr<SenderLink>> probes;
  std::vector<std::pair<std::shared_ptr<SenderLink>, absl::Status>> ends;
  std::vector<std::shared_ptr<Entry>> looks;
};

struct Registry::Figures {
  explicit Figures(Metrics& metrics);

  Labelled<Counter> heartbeats;
  Counter taken;
  Counter out_of_order;
  Labelled<Gauge> senders;
  Labelled<Counter> transitions;
  Counter probes;
  Counter duplicate_agents;
  Counter refused;
  Gauge interval;
  Gauge doubt;
  Gauge lag;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_HEARTBEATS_REGISTRY_ENTRY_H_
