#include "services/status/heartbeats/timing_wheel.h"

#include <algorithm>

namespace muster {
namespace {

void Link(WheelNode& head, WheelNode& node) {
  node.previous = head.previous;
  node.next = &head;
  head.previous->next = &node;
  head.previous = &node;
}

// Moves the whole ring after `head` to `to`, which is empty.
void TakeRing(WheelNode& head, WheelNode& to) {
  to.next = to.previous = &to;
  if (head.next == &head) return;
  to.next = head.next;
  to.previous = head.previous;
  to.next->previous = &to;
  to.previous->next = &to;
  head.next = head.previous = &head;
}

}  // namespace

TimingWheel::TimingWheel() {
  for (auto& level : levels_) {
    for (WheelNode& head : level) head.next = head.previous = &head;
  }
}

void TimingWheel::Remove(WheelNode& node) {
  if (node.next == nullptr) return;
  node.previous->next = node.next;
  node.next->previous = node.previous;
  node.next = node.previous = nullptr;
}

void TimingWheel::Add(WheelNode& node, int64_t due) {
  Remove(node);
  node.due = std::max(due, now_ + 1);
  Place(node);
}

void TimingWheel::Place(WheelNode& node) {
  const int64_t far = (int64_t{1} << (3 * kBits)) - 1;
  const int64_t distance = std::min(node.due - now_, far);
  const int64_t at = now_ + distance;
  int level = 0;
  while (level < 2 && distance >> (kBits * (level + 1)) != 0) ++level;
  Link(levels_[static_cast<size_t>(level)][static_cast<size_t>((at >> (kBits * level)) & kMask)],
       node);
}

void TimingWheel::MoveInwards(int level) {
  const int64_t slot = (now_ >> (kBits * level)) & kMask;
  if (slot == 0 && level < 2) MoveInwards(level + 1);
  WheelNode ring;
  TakeRing(levels_[static_cast<size_t>(level)][static_cast<size_t>(slot)], ring);
  while (ring.next != &ring) {
    WheelNode& node = *ring.next;
    Remove(node);
    Place(node);
  }
}

void TimingWheel::Advance(int64_t now, const std::function<void(WheelNode&)>& fell_due) {
  while (now_ < now) {
    ++now_;
    if ((now_ & kMask) == 0) MoveInwards(1);
    WheelNode ring;
    TakeRing(levels_[0][static_cast<size_t>(now_ & kMask)], ring);
    while (ring.next != &ring) {
      WheelNode& node = *ring.next;
      Remove(node);
      fell_due(node);
    }
  }
}

}  // namespace muster
