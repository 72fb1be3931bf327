#include "services/relay/files/child_offers.h"

#include <utility>

namespace muster {
namespace {

constexpr int kMostInAMessage = 100;

}  // namespace

bool ChildOffers::IsDue(SentById& sent, const std::string& id,
                        const std::shared_ptr<ChildLink>& link) {
  const absl::Duration now = clock_.MonotonicNow();
  const auto [it, first] = sent.try_emplace(id);
  if (!first && it->second.link.lock() == link && it->second.again > now) return false;
  it->second = {link, now + again_};
  return true;
}

void ChildOffers::Offer(const ShareRecord& record, const std::string& child,
                        absl::FunctionRef<absl::StatusOr<v1::SharedFile>()> read) {
  const auto link = tree_.Route(child);
  v1::ShareOffers& message = messages_[child];
  if (link == nullptr || message.files_size() >= kMostInAMessage) return;
  if (!IsDue(offers_, record.id, link)) return;
  auto file = read();
  if (file.ok()) *message.add_files() = *std::move(file);
}

void ChildOffers::RequestRemoval(const ShareRecord& record) {
  const auto link = tree_.Route(record.child);
  v1::ShareOffers& message = messages_[record.child];
  if (link == nullptr || message.removed_size() >= kMostInAMessage) return;
  if (IsDue(removals_, record.id, link)) *message.add_removed() = record.key();
}

void ChildOffers::Send() {
  for (auto& [child, offers] : std::exchange(messages_, {})) {
    const auto link = tree_.Route(child);
    if (link == nullptr || offers.files_size() + offers.removed_size() == 0) continue;
    v1::AttachResponse message;
    *message.mutable_shares() = std::move(offers);
    link->Send(std::move(message));
  }
}

void ChildOffers::Retain(absl::FunctionRef<bool(const std::string& id)> wanted) {
  std::erase_if(offers_, [&](const auto& sent) { return !wanted(sent.first); });
  std::erase_if(removals_, [&](const auto& sent) { return !wanted(sent.first); });
}

}  // namespace muster
