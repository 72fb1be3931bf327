#include "services/status/board/sender_pairs.h"

#include <algorithm>
#include <iterator>

namespace muster {

void SenderPairs::Add(const v1::ResultKey& key, const std::shared_ptr<const Sender>& sender) {
  MutexLock lock(mutex_);
  Entry& entry = senders_[sender.get()];
  entry.sender = sender;
  const bool known = std::ranges::any_of(entry.pairs, [&](const v1::ResultKey& pair) {
    return pair.run() == key.run() && pair.plugin() == key.plugin() && pair.node() == key.node();
  });
  if (!known) entry.pairs.push_back(key);
}

std::vector<v1::ResultKey> SenderPairs::Of(const Sender& sender) const {
  MutexLock lock(mutex_);
  const auto found = senders_.find(&sender);
  return found == senders_.end() ? std::vector<v1::ResultKey>() : found->second.pairs;
}

std::vector<std::shared_ptr<const Sender>> SenderPairs::OfRun(const std::string& run) const {
  std::vector<std::shared_ptr<const Sender>> senders;
  MutexLock lock(mutex_);
  for (const auto& [address, entry] : senders_) {
    const bool works = std::ranges::any_of(
        entry.pairs, [&](const v1::ResultKey& pair) { return pair.run() == run; });
    if (works) senders.push_back(entry.sender);
  }
  return senders;
}

void SenderPairs::KeepOnly(const std::set<std::string>& runs) {
  MutexLock lock(mutex_);
  for (auto it = senders_.begin(); it != senders_.end();) {
    std::erase_if(it->second.pairs,
                  [&](const v1::ResultKey& pair) { return !runs.contains(pair.run()); });
    it = it->second.pairs.empty() ? senders_.erase(it) : std::next(it);
  }
}

}  // namespace muster
