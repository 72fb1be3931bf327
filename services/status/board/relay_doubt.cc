#include "services/status/board/relay_doubt.h"

#include "absl/container/flat_hash_set.h"

namespace muster {

const RelayState* FindDoubted(const std::vector<const RelayState*>& lost, const PairTable& pairs) {
  if (lost.empty()) return nullptr;
  const absl::flat_hash_set<const RelayState*> relays(lost.begin(), lost.end());
  for (const auto& [name, plugin] : pairs.plugins()) {
    if (plugin.unheard > 0) return lost.front();
    for (const Pair* const pair : plugin.begun) {
      const auto& sender = pair->work->sender;
      if (pair->pending() && sender != nullptr && relays.contains(sender->relay())) {
        return sender->relay();
      }
    }
  }
  return nullptr;
}

}  // namespace muster
