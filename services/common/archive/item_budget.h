// The limits of a results tree: its memory, and the time to parse its files.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_ITEM_BUDGET_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_ITEM_BUDGET_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "services/common/archive/result_item.h"

namespace muster {

// Returns the approximate memory size of `item` without its children.
int64_t FootprintOf(const ResultItem& item);

// The memory and the time of the processor that remain for one plugin's tree. Not thread-safe.
class ItemBudget {
 public:
  // Sufficient for several hundred thousand test cases with their failure texts.
  static constexpr int64_t kDefaultBytes = int64_t{64} << 20;

  // The time to parse files that can be slow, of the tree and of one node: the files of a node must
  // not use up the time of the other nodes. 100,000 nodes may have 10 KB each.
  static constexpr absl::Duration kDefaultCpu = absl::Minutes(10);
  static constexpr absl::Duration kDefaultCpuOfNode = absl::Minutes(1);

  explicit ItemBudget(int64_t bytes = kDefaultBytes, absl::Duration cpu = kDefaultCpu,
                      absl::Duration cpu_of_node = kDefaultCpuOfNode)
      : left_(bytes), cpu_(cpu), cpu_of_node_(cpu_of_node), node_cpu_(cpu_of_node) {}

  // Reserves `bytes`. Returns false and reserves nothing if the budget is too small.
  bool Reserve(int64_t bytes);

  // From now on, Reserve leaves at least `bytes`.
  void KeepFree(int64_t bytes) { kept_free_ = bytes; }
  int64_t left() const { return left_; }

  // The next files are those of another node.
  void BeginNode() { node_cpu_ = cpu_of_node_; }

  // Returns the time that the next file may take; none is left if it is not positive.
  absl::Duration cpu() const { return std::min(cpu_, node_cpu_); }

  // A file took `time`.
  void SpendCpu(absl::Duration time);

 private:
  int64_t left_;
  int64_t kept_free_ = 0;
  absl::Duration cpu_;
  const absl::Duration cpu_of_node_;
  absl::Duration node_cpu_;
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
