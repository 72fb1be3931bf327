// The pairs of a run: by plugin and node, by reason, and counted.
#ifndef MUSTER_SERVICES_STATUS_BOARD_PAIR_TABLE_H_
#define MUSTER_SERVICES_STATUS_BOARD_PAIR_TABLE_H_

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "muster/v1/changes.pb.h"
#include "muster/v1/status.pb.h"
#include "services/status/board/pair.h"

namespace muster {

// Invariants: each pair is in the list of its reason, and in no other. The counts of a plugin agree
// with the outcomes and reasons of its pairs. `begun` and `unheard` of a plugin together hold each
// pending pair once. Not thread-safe.
class PairTable {
 public:
  using Plugins = std::map<std::string, PluginPairs, std::less<>>;

  // Returns the plugin, and adds it if it is absent.
  PluginPairs& Plugin(const std::string& name);

  // Returns null if the pair is not planned.
  Pair* Find(std::string_view plugin, std::string_view node);
  const Pair* Find(std::string_view plugin, std::string_view node) const;

  // Returns whether any plugin is planned for the node.
  bool PlansNode(std::string_view node) const;
  // Returns the node of each pair: as often as the node has pairs.
  std::vector<std::string> Nodes() const;

  // Adds a pending pair without a Work, planned `since` in monotonic time. The pair is never
  // moved.
  Pair& Add(const std::string& plugin, const std::string& node, absl::Duration since);

  void SetOutcome(Pair& pair, const v1::FollowChangesResponse::PairChanged& change);

  // Returns whether the reason is another one. `since` is as Pair::reason_since.
  bool SetReason(Pair& pair, v1::Reason reason, absl::Duration since);

  // Gives the pair a Work, which begins `now`, if it has none.
  Work& Hear(Pair& pair, absl::Duration now);

  const Plugins& plugins() const { return plugins_; }
  Plugins& plugins() { return plugins_; }
  const PairList& with_reason(v1::Reason reason) const { return by_reason_[reason]; }
  size_t size() const { return size_; }

 private:
  Plugins plugins_;
  std::array<PairList, v1::Reason_ARRAYSIZE> by_reason_;
  size_t size_ = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_PAIR_TABLE_H_
