#include "services/status/board/pair_change_log.h"

#include <algorithm>

namespace muster {
namespace {

constexpr size_t kSpareEntries = 1024;

}  // namespace

void PairChangeLog::Append(Pair& pair, size_t pair_count) {
  pair.version = ++version_;
  entries_.push_back({version_, &pair});
  if (entries_.size() > 2 * pair_count + kSpareEntries) {
    std::erase_if(entries_,
                  [](const Entry& entry) { return entry.pair->version != entry.version; });
  }
}

uint64_t PairChangeLog::Visit(uint64_t after, uint64_t until, int limit,
                              const std::function<bool(const Pair&)>& visit) const {
  auto entry = std::upper_bound(entries_.begin(), entries_.end(), after,
                                [](uint64_t a, const Entry& b) { return a < b.version; });
  for (int read = 0; entry != entries_.end() && entry->version <= until; ++entry) {
    if (read++ == limit) return after;
    const bool obsolete = entry->pair->version != entry->version;
    if (!obsolete && !visit(*entry->pair)) return after;
    after = entry->version;
  }
  return until;
}

}  // namespace muster
