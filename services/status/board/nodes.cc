#include "services/status/board/nodes.h"

#include <algorithm>

#include "services/common/base/names.h"
#include "services/common/errors/runs.h"
#include "services/common/identity/identity.h"
#include "services/status/board/pair.h"

namespace muster {
namespace {

constexpr int kMaxNodes = 1000;
constexpr int kNodes = 100;

// The best sender of a node is the one with the best presence, then the newest.
int Rank(v1::Presence presence) {
  switch (presence) {
    case v1::PRESENCE_ONLINE:
      return 6;
    case v1::PRESENCE_LATE:
      return 5;
    case v1::PRESENCE_SUSPECT:
      return 4;
    case v1::PRESENCE_UNKNOWN:
      return 3;
    case v1::PRESENCE_LOST:
      return 2;
    case v1::PRESENCE_OFFLINE:
      return 1;
    default:
      return 0;
  }
}

bool Better(const std::shared_ptr<const Sender>& a, const std::shared_ptr<const Sender>& b) {
  return std::pair(Rank(a->presence()), a->last_seen()) >
         std::pair(Rank(b->presence()), b->last_seen());
}

google::protobuf::Duration ToMicros(absl::Duration duration) {
  google::protobuf::Duration out;
  const int64_t micros = absl::ToInt64Microseconds(duration);
  out.set_seconds(micros / 1'000'000);
  out.set_nanos(static_cast<int32_t>(micros % 1'000'000 * 1000));
  return out;
}

}  // namespace

void Nodes::Plan(const std::string& node) {
  if (node == kGlobalNode) return;
  MutexLock lock(mutex_);
  ++nodes_[node].planned;
}

void Nodes::Unplan(const std::string& node) {
  MutexLock lock(mutex_);
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return;
  if (--found->second.planned <= 0 && found->second.senders.empty()) nodes_.erase(found);
}

void Nodes::Heard(const std::shared_ptr<const Sender>& sender) {
  if (sender->node() == kGlobalNode) return;
  MutexLock lock(mutex_);
  auto& senders = nodes_[sender->node()].senders;
  if (std::find(senders.begin(), senders.end(), sender) == senders.end()) senders.push_back(sender);
}

v1::Node Nodes::Show(const std::string& node, const Entry& entry, const Moment& now) {
  v1::Node out;
  out.set_node(node);
  const auto best = std::min_element(entry.senders.begin(), entry.senders.end(), Better);
  if (best == entry.senders.end()) return out;
  out.set_presence((*best)->presence());
  *out.mutable_presence_since() = ToTimestamp(now.WallOf((*best)->presence_since()));
  *out.mutable_last_heartbeat() = ToTimestamp(now.WallOf((*best)->last_seen()));
  *out.mutable_clock_skew() = ToMicros((*best)->clock_skew());
  for (const auto& sender : entry.senders) {
    if (sender->duplicate_agent()) out.set_duplicate_agent(true);
  }
  return out;
}

absl::StatusOr<v1::ListNodesResponse> Nodes::List(const v1::ListNodesRequest& request,
                                                  const Moment& now) const {
  if (request.page_size() < 0 || request.page_size() > kMaxNodes) {
    return errors::InvalidPageSize(kMaxNodes);
  }
  // The token is the last name of the page before.
  if (!request.page_token().empty() && !ValidateName("page token", request.page_token()).ok()) {
    return errors::InvalidPageToken();
  }
  const int limit = request.page_size() == 0 ? kNodes : request.page_size();
  v1::ListNodesResponse page;
  MutexLock lock(mutex_);
  for (auto it = nodes_.upper_bound(request.page_token()); it != nodes_.end(); ++it) {
    v1::Node node = Show(it->first, it->second, now);
    if (request.presence() != v1::PRESENCE_UNSPECIFIED && node.presence() != request.presence()) {
      continue;
    }
    if (page.nodes_size() == limit) {
      page.set_next_page_token(page.nodes(limit - 1).node());
      break;
    }
    *page.add_nodes() = std::move(node);
  }
  return page;
}

std::optional<v1::Node> Nodes::Get(const std::string& node, const Moment& now) const {
  MutexLock lock(mutex_);
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return std::nullopt;
  return Show(found->first, found->second, now);
}

void Nodes::Prune() {
  MutexLock lock(mutex_);
  for (auto it = nodes_.begin(); it != nodes_.end();) {
    auto& senders = it->second.senders;
    std::sort(senders.begin(), senders.end(), Better);
    const size_t kept = it->second.planned > 0 ? 1 : 0;
    for (size_t i = senders.size(); i > kept; --i) {
      if (senders[i - 1].use_count() == 1) senders.erase(senders.begin() + (i - 1));
    }
    it = senders.empty() && it->second.planned <= 0 ? nodes_.erase(it) : std::next(it);
  }
}

}  // namespace muster
