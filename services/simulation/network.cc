#include "services/simulation/network.h"

#include <algorithm>
#include <utility>

namespace muster::testing {

void Connection::Send(End from, std::function<void()> deliver) {
  if (!open_[from]) return;
  const End to = Other(from);
  const absl::Duration sent =
      std::max(network_.now() + network_.Delay(), network_.HealedAt(machines_[0], machines_[1]));
  arrival_[to] = std::max(arrival_[to], sent);
  network_.After(arrival_[to] - network_.now(),
                 [self = shared_from_this(), to, deliver = std::move(deliver)] {
                   if (self->open_[to] && !self->cut_[to]) deliver();
                 });
}

void Connection::Close(End from) {
  if (!open_[from]) return;
  const End to = Other(from);
  Send(from, [this, to] { LoseAfter(to, absl::ZeroDuration()); });
  open_[from] = false;
  lost_[from] = nullptr;
}

void Connection::LoseAfter(End end, absl::Duration delay) {
  network_.After(delay, [self = shared_from_this(), end] {
    if (!self->open_[end]) return;
    self->open_[end] = false;
    if (const auto lost = std::exchange(self->lost_[end], nullptr)) lost();
  });
}

// The messages in transit arrive or are lost, for good; the ends learn it one after the other.
void Connection::Reset() {
  for (const End end : {kClient, kServer}) {
    if (network_.Chance(2) == 0) cut_[end] = true;
    const bool late = network_.Chance(3) == 0;
    LoseAfter(end, network_.Delay() + (late ? absl::Seconds(10) : absl::ZeroDuration()));
  }
}

void Network::After(absl::Duration delay, std::function<void()> event) {
  events_.emplace(std::pair(now_ + delay, ++events_made_), std::move(event));
}

void Network::RunNext() {
  const auto next = events_.begin();
  const absl::Duration by = next->first.first - now_;
  now_ = next->first.first;
  const auto event = std::move(next->second);
  events_.erase(next);
  if (on_time_ && by > absl::ZeroDuration()) on_time_(by);
  event();
}

std::shared_ptr<Connection> Network::Connect(const std::string& client, const std::string& server) {
  const std::shared_ptr<Connection> connection(new Connection(*this, {client, server}));
  connections_.push_back(connection);
  return connection;
}

std::vector<std::shared_ptr<Connection>> Network::Live() {
  std::erase_if(connections_, [](const auto& connection) {
    return !connection->open_[0] && !connection->open_[1];
  });
  return connections_;
}

void Network::Lose(const std::string& machine) {
  for (const auto& connection : Live()) {
    for (const Connection::End end : {Connection::kClient, Connection::kServer}) {
      if (connection->machines_[end] != machine) continue;
      connection->open_[end] = false;
      connection->lost_[end] = nullptr;
      const Connection::End other = Connection::Other(end);
      // Without a packet that tells it, the other end finds the silence.
      const bool silent = !calm_ && Chance(3) == 0;
      connection->LoseAfter(other, silent ? absl::Seconds(10 + Chance(30)) : Delay());
    }
  }
}

void Network::ResetOne() {
  const auto live = Live();
  if (!live.empty()) live[Chance(live.size())]->Reset();
}

void Network::Partition(const std::string& a, const std::string& b, absl::Duration time) {
  partitions_[std::minmax(a, b)] = now_ + time;
  for (const auto& connection : Live()) {
    const auto& machines = connection->machines_;
    if (std::minmax(machines[0], machines[1]) != std::minmax(a, b)) continue;
    if (Chance(2) == 0) connection->Reset();
  }
}

absl::Duration Network::HealedAt(const std::string& a, const std::string& b) const {
  const auto partition = partitions_.find(std::minmax(a, b));
  return partition == partitions_.end() ? absl::ZeroDuration() : partition->second;
}

bool Network::IsPartitioned(const std::string& a, const std::string& b) const {
  return HealedAt(a, b) > now_;
}

absl::Duration Network::Delay() {
  if (calm_ || Chance(20) != 0) return absl::Milliseconds(1 + static_cast<int>(Chance(5)));
  return absl::Milliseconds(5 + static_cast<int>(Chance(2000)));
}

}  // namespace muster::testing
