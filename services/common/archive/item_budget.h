// The bound of a results tree in memory.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_ITEM_BUDGET_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_ITEM_BUDGET_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "services/common/archive/result_item.h"

namespace muster {

// About what `item` takes in memory, without its children.
int64_t FootprintOf(const ResultItem& item);

// How much of one plugin's tree may still be kept. Not thread-safe.
class ItemBudget {
 public:
  // Enough for some hundred thousand test cases with their failure texts.
  static constexpr int64_t kDefaultBytes = int64_t{64} << 20;

  explicit ItemBudget(int64_t bytes = kDefaultBytes) : left_(bytes) {}

  // Takes `bytes` out of the budget; false, and nothing is taken, if there is not enough left.
  bool Take(int64_t bytes);

 private:
  int64_t left_;
};

// The children of an item that is being built: those that fit are kept, of the others only the
// number by status, told by one visible item at the end. So a status that is rolled up and the
// counts of a summary stay right however much was left out. Not thread-safe.
class BoundedItems {
 public:
  explicit BoundedItems(ItemBudget& budget) : budget_(budget) {}

  void Add(ResultItem item);
  // Counts leaves of which nothing is kept.
  void Omit(const StatusCounts& counts);

  bool empty() const { return items_.empty() && omitted_.empty(); }
  std::vector<ResultItem>& items() { return items_; }

  // The items, and after them, if anything was left out, the note that says so.
  std::vector<ResultItem> Take();

 private:
  ItemBudget& budget_;
  std::vector<ResultItem> items_;
  StatusCounts omitted_;
};

// `text`, or its beginning with a note of how much was cut off if it is longer than `max` bytes.
std::string CutText(std::string_view text, size_t max);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_ITEM_BUDGET_H_
