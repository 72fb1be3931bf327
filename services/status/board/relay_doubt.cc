#include "services/status/board/relay_doubt.h"

#include <algorithm>

namespace muster {

bool MayForward(const RelayState& relay, const PairTable& pairs) {
  const auto forwards = [&relay](const Pair* pair) {
    const auto& sender = pair->work->sender;
    return pair->pending() && sender != nullptr && sender->relay() == &relay;
  };
  return std::any_of(pairs.plugins().begin(), pairs.plugins().end(), [&](const auto& entry) {
    const PluginPairs& plugin = entry.second;
    return plugin.unheard > 0 || std::any_of(plugin.begun.begin(), plugin.begun.end(), forwards);
  });
}

}  // namespace muster
