// The memory that long texts of senders take: messages, faults, and names of failed items.
#ifndef MUSTER_SERVICES_STATUS_BOARD_TEXT_BUDGET_H_
#define MUSTER_SERVICES_STATUS_BOARD_TEXT_BUDGET_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace muster {

// One credential may report for every node of a plugin, so a limit for each pair does not bound
// what it stores.
inline constexpr size_t kTextBytesOfPlugin = size_t{8} << 20;
inline constexpr size_t kTextBytesInAll = size_t{64} << 20;

// The texts of all runs. Thread-safe.
class TextBudget {
 public:
  explicit TextBudget(size_t in_all = kTextBytesInAll) : in_all_(in_all) {}

  [[nodiscard]] bool TryReserve(size_t bytes) {
    size_t used = used_.load();
    do {
      if (bytes > in_all_ - used) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes));
    return true;
  }
  void Release(size_t bytes) { used_ -= bytes; }

  // The texts of a report were shortened, because the budget was used up.
  void CountShortened() { ++shortened_; }

  size_t used() const { return used_; }
  uint64_t shortened() const { return shortened_; }

 private:
  const size_t in_all_;
  std::atomic<size_t> used_ = 0;  // at most in_all_
  std::atomic<uint64_t> shortened_ = 0;
};

// The texts of the pairs of one plugin of a run. Its end releases them. Not thread-safe.
class PluginTexts {
 public:
  PluginTexts() = default;
  ~PluginTexts() {
    if (all_ != nullptr) all_->Release(used_);
  }
  PluginTexts(const PluginTexts&) = delete;
  PluginTexts& operator=(const PluginTexts&) = delete;

  // A pair that has reserved `held` bytes wants `wanted` ones. Returns the bytes that it has then:
  // `held` if the budget has no more. `all` is always the same, and outlives this object.
  size_t Resize(size_t held, size_t wanted, TextBudget& all) {
    all_ = &all;
    if (wanted > held) {
      const size_t more = wanted - held;
      if (more > kTextBytesOfPlugin - used_ || !all.TryReserve(more)) return held;
      used_ += more;
    } else {
      used_ -= held - wanted;
      all.Release(held - wanted);
    }
    return wanted;
  }

 private:
  TextBudget* all_ = nullptr;  // null: nothing was reserved yet
  size_t used_ = 0;            // at most kTextBytesOfPlugin
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_TEXT_BUDGET_H_
