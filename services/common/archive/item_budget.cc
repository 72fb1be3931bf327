#include "services/common/archive/item_budget.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/strings.h"

namespace muster {
namespace {

int64_t FootprintOf(const nlohmann::ordered_json& value) {
  int64_t bytes = 64;
  if (value.is_string()) bytes += static_cast<int64_t>(value.get_ref<const std::string&>().size());
  if (value.is_structured()) {
    for (const auto& [key, child] : value.items()) {
      bytes += static_cast<int64_t>(key.size()) + FootprintOf(child);
    }
  }
  return bytes;
}

bool IsNote(const ResultItem& item) {
  const auto type = item.meta.find(kMetaType);
  return type != item.meta.end() && type->second == kTypeOmitted;
}

}  // namespace

int64_t FootprintOf(const ResultItem& item) {
  size_t bytes = sizeof(ResultItem) + item.name.size() + item.status.size();
  for (const auto& [key, value] : item.meta) bytes += 128 + key.size() + value.size();
  return static_cast<int64_t>(bytes) + (item.details.is_null() ? 0 : FootprintOf(item.details));
}

bool ItemBudget::Reserve(int64_t bytes) {
  if (bytes > left_ - kept_free_) return false;
  left_ -= bytes;
  return true;
}

void ItemBudget::SpendCpu(absl::Duration time) {
  cpu_ -= time;
  node_cpu_ -= time;
}

void BoundedItems::Add(ResultItem item) {
  // The children have reserved their memory, and would be lost with their parent. A note is last.
  constexpr int64_t kSmallParent = 1024;
  const int64_t footprint = FootprintOf(item);
  const bool has_children = !item.items.empty() && !IsNote(item.items.front());
  if (budget_.Reserve(footprint) || (has_children && footprint <= kSmallParent)) {
    items_.push_back(std::move(item));
  } else {
    Omit(CountLeaves(item));
  }
}

void BoundedItems::Omit(const StatusCounts& counts) {
  for (const auto& [status, number] : counts) {
    // A plugin may give each leaf another status: beyond this number they share one count.
    constexpr size_t kMaxStatuses = 100;
    const bool known = omitted_.size() < kMaxStatuses || omitted_.contains(status);
    omitted_[known ? status : std::string(kUnknown)] += number;
  }
}

std::vector<ResultItem> BoundedItems::Finish() {
  std::vector<ResultItem> items = std::move(items_);
  items_.clear();
  if (omitted_.empty()) return items;
  ResultItem note;
  int64_t number = 0;
  note.meta[kMetaType] = std::string(kTypeOmitted);
  for (const auto& [status, count] : omitted_) {
    note.meta[absl::StrCat(ToAbsl(kMetaOmittedPrefix), status)] = absl::StrCat(count);
    number += count;
  }
  note.name = absl::StrCat(number, " more left out of this over-long tree: see the files");
  omitted_.clear();
  items.push_back(std::move(note));
  return items;
}

std::string CutText(std::string_view text, size_t max) {
  if (text.size() <= max) return std::string(text);
  return absl::StrCat(ToAbsl(text.substr(0, max)), " [", text.size() - max,
                      " more bytes: see the file]");
}

}  // namespace muster
