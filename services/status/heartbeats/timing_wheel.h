// Deadlines of very many things, each found when it falls due without looking at the others.
//
// Three wheels of 64 slots: ticks, 64 ticks, 4096 ticks. A deadline waits in the slot of its
// distance and moves inwards with time. One beyond 262,143 ticks waits in the outermost wheel and
// is placed again. Adding, removing and each tick cost O(1) a node.
#ifndef MUSTER_SERVICES_STATUS_HEARTBEATS_TIMING_WHEEL_H_
#define MUSTER_SERVICES_STATUS_HEARTBEATS_TIMING_WHEEL_H_

#include <array>
#include <cstdint>
#include <functional>

namespace muster {

// The base of objects in a wheel. An object has to be removed before it is destroyed.
struct WheelNode {
  WheelNode* next = nullptr;  // null: it waits in no wheel
  WheelNode* previous = nullptr;
  int64_t due = 0;  // tick
};

// Not thread-safe. Ticks are counted from 0.
class TimingWheel {
 public:
  TimingWheel();
  TimingWheel(const TimingWheel&) = delete;
  TimingWheel& operator=(const TimingWheel&) = delete;

  // `node` falls due at tick `due`, at the next one if that is past. Moves it if it waits already.
  void Add(WheelNode& node, int64_t due);

  // Nothing happens if it does not wait.
  static void Remove(WheelNode& node);

  // Advances to tick `now`. Removes each node that is due, in the order of the ticks, and passes it
  // to `fell_due`, which may add and remove nodes.
  void Advance(int64_t now, const std::function<void(WheelNode&)>& fell_due);

  int64_t now() const { return now_; }

 private:
  static constexpr int kBits = 6;
  static constexpr int64_t kSlots = int64_t{1} << kBits;
  static constexpr int64_t kMask = kSlots - 1;

  void Place(WheelNode& node);
  void MoveInwards(int level);

  int64_t now_ = 0;
  std::array<std::array<WheelNode, kSlots>, 3> levels_;  // heads of rings
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_HEARTBEATS_TIMING_WHEEL_H_
