#include "services/status/board/pair_table.h"

#include <algorithm>
#include <memory>

#include "services/common/base/strings.h"

namespace muster {
namespace {

void Count(v1::Outcome outcome, int64_t n, v1::ResultCounts* counts) {
  switch (outcome) {
    case v1::OUTCOME_PENDING:
      return counts->set_pending(counts->pending() + n);
    case v1::OUTCOME_GENUINE:
      return counts->set_genuine(counts->genuine() + n);
    case v1::OUTCOME_ERROR:
      return counts->set_errors(counts->errors() + n);
    case v1::OUTCOME_TIMED_OUT:
      return counts->set_timed_out(counts->timed_out() + n);
    default:
      return;
  }
}

// Pairs with an outcome are not counted by reason.
bool IsCounted(v1::Reason reason) {
  return reason != v1::REASON_UNSPECIFIED && reason != v1::REASON_TIMED_OUT;
}

}  // namespace

PluginPairs& PairTable::Plugin(const std::string& name) {
  PluginPairs& plugin = plugins_[name];
  plugin.name = name;
  return plugin;
}

Pair* PairTable::Find(std::string_view plugin, std::string_view node) {
  return const_cast<Pair*>(std::as_const(*this).Find(plugin, node));
}

const Pair* PairTable::Find(std::string_view plugin, std::string_view node) const {
  const auto found = plugins_.find(plugin);
  if (found == plugins_.end()) return nullptr;
  const auto pair = found->second.by_node.find(ToAbsl(node));
  return pair == found->second.by_node.end() ? nullptr : pair->second;
}

bool PairTable::PlansNode(std::string_view node) const {
  return std::any_of(plugins_.begin(), plugins_.end(), [node](const auto& entry) {
    return entry.second.by_node.contains(ToAbsl(node));
  });
}

std::vector<std::string> PairTable::Nodes() const {
  std::vector<std::string> nodes;
  for (const auto& [name, plugin] : plugins_) {
    for (const Pair& pair : plugin.pairs) nodes.push_back(pair.node);
  }
  return nodes;
}

Pair& PairTable::Add(const std::string& plugin_name, const std::string& node,
                     absl::Duration since) {
  PluginPairs& plugin = Plugin(plugin_name);
  Pair& pair = plugin.pairs.emplace_back();
  ++size_;
  pair.node = node;
  pair.plugin = &plugin;
  plugin.by_node.emplace(pair.node, &pair);
  // The feed nearly always lists them in order.
  const auto place = plugin.sorted.empty() || plugin.sorted.back()->node < node
                         ? plugin.sorted.end()
                         : std::upper_bound(
                               plugin.sorted.begin(), plugin.sorted.end(), node,
                               [](const std::string& a, const Pair* b) { return a < b->node; });
  plugin.sorted.insert(place, &pair);
  plugin.counts.set_planned(plugin.counts.planned() + 1);
  Count(v1::OUTCOME_PENDING, 1, &plugin.counts);
  ++plugin.unheard;
  pair.reason = v1::REASON_NOT_STARTED;
  pair.reason_since = since;
  ++plugin.reasons[pair.reason];
  PairList& list = by_reason_[pair.reason];
  pair.by_reason = list.insert(list.end(), &pair);
  return pair;
}

void PairTable::SetOutcome(Pair& pair, const v1::FollowChangesResponse::PairChanged& change) {
  PluginPairs& plugin = *pair.plugin;
  const bool was_pending = pair.pending();
  Count(pair.outcome, -1, &plugin.counts);
  Count(change.outcome(), 1, &plugin.counts);
  pair.outcome = change.outcome();
  pair.generation = change.generation();
  pair.size = change.size();
  pair.error = change.error();
  if (was_pending == pair.pending()) return;
  if (pair.work == nullptr) {
    plugin.unheard += pair.pending() ? 1 : -1;
  } else if (pair.pending()) {
    // Only an aggregator that was set back to an older state revokes an outcome.
    plugin.begun.push_back(&pair);
  }
}

bool PairTable::SetReason(Pair& pair, v1::Reason reason, absl::Duration since) {
  if (reason == pair.reason) return false;
  PairList& to = by_reason_[reason];
  to.splice(to.end(), by_reason_[pair.reason], pair.by_reason);
  if (IsCounted(pair.reason)) --pair.plugin->reasons[pair.reason];
  if (IsCounted(reason)) ++pair.plugin->reasons[reason];
  pair.reason = reason;
  pair.reason_since = since;
  return true;
}

Work& PairTable::Hear(Pair& pair, absl::Duration now) {
  if (pair.work == nullptr) {
    pair.work = std::make_unique<Work>();
    pair.work->began = now;
    if (pair.pending()) {
      --pair.plugin->unheard;
      pair.plugin->begun.push_back(&pair);
    }
  }
  return *pair.work;
}

}  // namespace muster
