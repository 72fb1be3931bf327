#include "services/status/board/pair_pages.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "services/common/errors/runs.h"

namespace muster {
namespace {

// The pairs that a part of a page reads: that takes well below a millisecond.
constexpr int kPart = 256;

bool Matches(const StatusQuery& query, const Pair& pair) {
  if (query.outcome != v1::OUTCOME_UNSPECIFIED && pair.outcome != query.outcome) return false;
  return query.reasons.empty() ||
         (pair.pending() && std::find(query.reasons.begin(), query.reasons.end(), pair.reason) !=
                                query.reasons.end());
}

// Returns the first pair of the plugin that the query may want after `position`.
std::vector<Pair*>::const_iterator FirstPair(const PluginPairs& plugin, const StatusQuery& query,
                                             const PagePosition& position) {
  const std::vector<Pair*>& sorted = plugin.sorted;
  auto first = sorted.begin();
  if (!query.only_node.empty()) {
    first = std::lower_bound(sorted.begin(), sorted.end(), query.only_node,
                             [](const Pair* a, const std::string& b) { return a->node < b; });
  }
  if (plugin.name != position.plugin) return first;
  return std::max(
      first, std::upper_bound(sorted.begin(), sorted.end(), position.node,
                              [](const std::string& a, const Pair* b) { return a < b->node; }));
}

}  // namespace

// "<plugin>/<node>"; a name contains no slash.
absl::StatusOr<PagePosition> ParsePageToken(const std::string& token) {
  if (token.empty()) return PagePosition();
  const size_t slash = token.find('/');
  if (slash == 0 || slash == std::string::npos || token.find('/', slash + 1) != std::string::npos) {
    return errors::InvalidPageToken();
  }
  return PagePosition{token.substr(0, slash), token.substr(slash + 1)};
}

std::string ToPageToken(const PagePosition& position) {
  return absl::StrCat(position.plugin, "/", position.node);
}

PagePart AddPagePart(const PairTable& pairs, const StatusQuery& query, const PairView& view,
                     PagePosition* position, PairWriter* out) {
  const std::string& wanted = query.only_plugin.empty() ? query.plugin : query.only_plugin;
  int read = 0;
  const Pair* last = nullptr;
  const auto stop = [&](PagePart part) {
    if (last != nullptr) *position = {last->plugin->name, last->node};
    return part;
  };
  for (auto plugin = pairs.plugins().lower_bound(position->plugin); plugin != pairs.plugins().end();
       ++plugin) {
    if (!wanted.empty() && plugin->first != wanted) continue;
    const auto end = plugin->second.sorted.end();
    for (auto pair = FirstPair(plugin->second, query, *position); pair != end; ++pair) {
      if (!query.only_node.empty() && (*pair)->node != query.only_node) break;
      if (read++ == kPart) return stop(PagePart::kMore);
      if (Matches(query, **pair)) {
        if (out->count() == query.page_size || out->bytes() >= kPairBytesOfMessage) {
          return stop(PagePart::kPageFull);
        }
        out->Add(**pair, view);
      }
      last = *pair;
    }
  }
  return PagePart::kEnd;
}

}  // namespace muster
