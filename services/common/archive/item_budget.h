// The memory limit of a results tree.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_ITEM_BUDGET_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_ITEM_BUDGET_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "services/common/archive/result_item.h"

namespace muster {

// Returns the approximate memory size of `item` without its children.
int64_t FootprintOf(const ResultItem& item);

// The remaining memory for one plugin's tree. Not thread-safe.
class ItemBudget {
 public:
  // Sufficient for several hundred thousand test cases with their failure texts.
  static constexpr int64_t kDefaultBytes = int64_t{64} << 20;

  explicit ItemBudget(int64_t bytes = kDefaultBytes) : left_(bytes) {}

  // Reserves `bytes`. Returns false and reserves nothing if the budget is too small.
  bool Reserve(int64_t bytes);

 private:
  int64_t left_;
};

// The children of an item that is being built. Keeps the children that fit, and of the others only
// the number by status, which one visible item at the end reports. Rolled-up statuses and summaries
// therefore remain correct. Not thread-safe.
class BoundedItems {
 public:
  explicit BoundedItems(ItemBudget& budget) : budget_(budget) {}

  void Add(ResultItem item);
  // Counts leaves that are not kept.
  void Omit(const StatusCounts& counts);

  bool empty() const { return items_.empty() && omitted_.empty(); }
  std::vector<ResultItem>& items() { return items_; }

  // Returns the items, followed by the note about omitted ones, if any.
  std::vector<ResultItem> Finish();

 private:
  ItemBudget& budget_;
  std::vector<ResultItem> items_;
  StatusCounts omitted_;
};

// Returns `text`, or its first `max` bytes with a note about the number of omitted bytes.
std::string CutText(std::string_view text, size_t max);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_ITEM_BUDGET_H_
