// The network and the time of a simulated world.
#ifndef MUSTER_SERVICES_SIMULATION_NETWORK_H_
#define MUSTER_SERVICES_SIMULATION_NETWORK_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace muster::testing {

class Network;

// A connection between two processes. Messages of one direction arrive in order, once, or not at
// all after a reset. Each end learns of the loss at its own time.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  enum End : size_t { kClient = 0, kServer = 1 };

  // Runs `deliver` when the message of `from` arrives, unless the connection is lost before.
  void Send(End from, std::function<void()> deliver);

  // Runs when this end learns that the connection is lost or closed by the other.
  void OnLost(End end, std::function<void()> lost) { lost_[end] = std::move(lost); }

  // This end closes: the other one learns it after the messages.
  void Close(End from);

  bool is_open(End end) const { return open_[end]; }

 private:
  friend class Network;
  Connection(Network& network, std::array<std::string, 2> machines)
      : network_(network), machines_(std::move(machines)) {}
  static End Other(End end) { return end == kClient ? kServer : kClient; }
  void LoseAfter(End end, absl::Duration delay);
  void Reset();

  Network& network_;
  const std::array<std::string, 2> machines_;
  std::array<bool, 2> open_ = {true, true};
  std::array<bool, 2> cut_ = {false, false};    // by the end that no message reaches any more
  std::array<absl::Duration, 2> arrival_ = {};  // of the last message, by the end that receives it
  std::array<std::function<void()>, 2> lost_;
};

// Not thread-safe. Delays, losses and their order follow the seed.
class Network {
 public:
  explicit Network(uint64_t seed) : chance_(seed) {}

  absl::Duration now() const { return now_; }

  // Runs `event` later. Events of the same time run in the order of the calls.
  void After(absl::Duration delay, std::function<void()> event);

  // Advances to the next event and runs it. `on_time` runs before each advance with its length.
  void RunNext();
  void set_on_time(std::function<void(absl::Duration by)> on_time) {
    on_time_ = std::move(on_time);
  }

  std::shared_ptr<Connection> Connect(const std::string& client, const std::string& server);

  // Ends the connections of a process that has ended; the other ends learn it later.
  void Lose(const std::string& machine);

  // Resets one of the connections.
  void ResetOne();

  // Delays all messages between two machines until the time has passed. Connections may be lost.
  void Partition(const std::string& a, const std::string& b, absl::Duration time);
  bool IsPartitioned(const std::string& a, const std::string& b) const;

  // From now on nothing is lost, and the delays are short.
  void Calm() { calm_ = true; }

  // The time that a message needs.
  absl::Duration Delay();

 private:
  friend class Connection;
  // Returns the connections with an open end, in the order of their begin.
  std::vector<std::shared_ptr<Connection>> Live();
  uint64_t Chance(uint64_t below) { return chance_() % below; }
  absl::Duration HealedAt(const std::string& a, const std::string& b) const;

  std::mt19937_64 chance_;
  absl::Duration now_;
  uint64_t events_made_ = 0;
  std::map<std::pair<absl::Duration, uint64_t>, std::function<void()>> events_;
  std::function<void(absl::Duration by)> on_time_;
  std::vector<std::shared_ptr<Connection>> connections_;                      // with an open end
  std::map<std::pair<std::string, std::string>, absl::Duration> partitions_;  // and their ends
  bool calm_ = false;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_SIMULATION_NETWORK_H_
