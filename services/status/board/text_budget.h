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
// A node may report for each plugin of a run, and so may the credentials of several plugins.
inline constexpr size_t kTextBytesOfRun = size_t{16} << 20;
inline constexpr size_t kTextBytesInAll = size_t{64} << 20;

// The texts of all runs, or of one run as a part of these. Thread-safe.
class TextBudget {
 public:
  explicit TextBudget(size_t limit = kTextBytesInAll) : limit_(limit) {}
  // A part of `whole`, which outlives this object.
  TextBudget(size_t limit, TextBudget& whole) : limit_(limit), whole_(&whole) {}

  [[nodiscard]] bool TryReserve(size_t bytes) {
    size_t used = used_.load();
    do {
      if (bytes > limit_ - used) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes));
    if (whole_ == nullptr || whole_->TryReserve(bytes)) return true;
    used_ -= bytes;
    return false;
  }
  void Release(size_t bytes) {
    used_ -= bytes;
    if (whole_ != nullptr) whole_->Release(bytes);
  }

  // The texts of a report were shortened, because the budget was used up.
  void CountShortened() {
    ++shortened_;
    if (whole_ != nullptr) whole_->CountShortened();
  }

  size_t used() const { return used_; }
  uint64_t shortened() const { return shortened_; }

 private:
  const size_t limit_;
  TextBudget* const whole_ = nullptr;
  std::atomic<size_t> used_ = 0;  // at most limit_
  std::atomic<uint64_t> shortened_ = 0;
};

// The texts of the pairs of one plugin of a run. Its end releases them. Not thread-safe.
class PluginTexts {
 public:
  PluginTexts() = default;
  ~PluginTexts() {
    if (run_ != nullptr) run_->Release(used_);
  }
  PluginTexts(const PluginTexts&) = delete;
  PluginTexts& operator=(const PluginTexts&) = delete;

  // A pair that has reserved `held` bytes wants `wanted` ones. Returns the bytes that it has then:
  // `held` if the budget has no more. `run` is always the same, and outlives this object.
  size_t Resize(size_t held, size_t wanted, TextBudget& run) {
    run_ = &run;
    if (wanted > held) {
      const size_t more = wanted - held;
      if (more > kTextBytesOfPlugin - used_ || !run.TryReserve(more)) return held;
      used_ += more;
    } else {
      used_ -= held - wanted;
      run.Release(held - wanted);
    }
    return wanted;
  }

 private:
  TextBudget* run_ = nullptr;  // null: nothing was reserved yet
  size_t used_ = 0;            // at most kTextBytesOfPlugin
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_TEXT_BUDGET_H_
