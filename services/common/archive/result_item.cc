#include "services/common/archive/result_item.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "services/common/base/strings.h"

namespace muster {
namespace {

bool IsFailure(std::string_view status) { return status == kFailed || status == kTimeout; }

bool IsStandard(std::string_view status) {
  return IsFailure(status) || status == kPassed || status == kSkipped || status == kUnknown ||
         status.empty();
}

bool IsOmittedNote(const ResultItem& item) {
  const auto type = item.meta.find(kMetaType);
  return type != item.meta.end() && type->second == kTypeOmitted;
}

std::optional<int64_t> ToInt(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Beyond this number of different statuses, those of a plugin share one count: each leaf may have
// another one.
constexpr size_t kMaxStatuses = 100;
constexpr char kOtherStatuses[] = "other";

void Count(StatusCounts& counts, std::string_view status, int64_t number) {
  // A plugin's own numbers must not overflow a sum.
  number = std::clamp<int64_t>(number, 0, 1'000'000'000);
  const auto it = counts.find(std::string(status));
  if (it != counts.end()) {
    it->second += number;
    return;
  }
  const bool fits = IsStandard(status) || counts.size() < kMaxStatuses;
  counts[fits ? std::string(status) : kOtherStatuses] += number;
}

// A plugin may have counted itself: "blue: 2, red: 1" stands for three leaves.
void CountStatus(std::string_view status, StatusCounts& counts) {
  if (IsStandard(status)) {
    return Count(counts, status.empty() ? kUnknown : status, 1);
  }
  for (const absl::string_view part : absl::StrSplit(ToAbsl(status), ", ")) {
    const std::pair<absl::string_view, absl::string_view> named =
        absl::StrSplit(part, absl::MaxSplits(": ", 1));
    const std::optional<int64_t> number = ToInt(ToStd(named.second));
    if (number.has_value()) {
      Count(counts, ToStd(named.first), *number);
    } else {
      Count(counts, ToStd(part), 1);
    }
  }
}

void AddLeaves(const ResultItem& item, StatusCounts& counts) {
  if (!item.items.empty()) {
    for (const ResultItem& child : item.items) AddLeaves(child, counts);
    return;
  }
  if (!IsOmittedNote(item)) {
    CountStatus(item.status, counts);
    return;
  }
  for (const auto& [key, value] : item.meta) {
    if (key.starts_with(kMetaOmittedPrefix)) {
      Count(counts, key.substr(kMetaOmittedPrefix.size()), ToInt(value).value_or(0));
    }
  }
}

std::string StatusOf(const StatusCounts& counts, bool custom) {
  if (counts.empty()) return std::string(kUnknown);
  if (custom) {
    return absl::StrJoin(counts, ", ", absl::PairFormatter(": "));
  }
  bool unknown = false;
  for (const auto& [status, number] : counts) {
    if (number == 0) continue;
    if (IsFailure(status)) return std::string(kFailed);
    unknown |= status == kUnknown;
  }
  return std::string(unknown ? kUnknown : kPassed);
}

StatusCounts RollUpBranch(ResultItem& item, bool custom) {
  if (item.items.empty()) {
    if (item.status.empty()) item.status = std::string(kUnknown);
    StatusCounts counts = CountLeaves(item);
    if (IsOmittedNote(item)) item.status = StatusOf(counts, custom);
    return counts;
  }
  StatusCounts counts;
  for (ResultItem& child : item.items) {
    for (const auto& [status, number] : RollUpBranch(child, custom)) Count(counts, status, number);
  }
  item.status = StatusOf(counts, custom);
  return counts;
}

// `node`: the one whose tree contains the item; may be empty.
void ListFailures(const ResultItem& item, std::string_view node, size_t max_failed,
                  ResultSummary& summary) {
  const auto type = item.meta.find(kMetaType);
  if (type != item.meta.end() && type->second == kTypeNode) node = item.name;
  for (const ResultItem& child : item.items) ListFailures(child, node, max_failed, summary);
  if (!item.items.empty()) return;
  if (IsOmittedNote(item)) {
    const StatusCounts counts = CountLeaves(item);
    for (const auto& [status, number] : counts) {
      if (IsFailure(status)) summary.failed_not_listed += number;
    }
  } else if (IsFailure(item.status)) {
    if (summary.failed.size() >= max_failed) {
      ++summary.failed_not_listed;
    } else {
      absl::string_view name = item.name;
      if (absl::ConsumePrefix(&name, "[It]")) name = absl::StripLeadingAsciiWhitespace(name);
      summary.failed.push_back({std::string(node), std::string(name)});
    }
  }
}

}  // namespace

StatusCounts CountLeaves(const ResultItem& item) {
  StatusCounts counts;
  AddLeaves(item, counts);
  return counts;
}

void RollUp(ResultItem& root) {
  bool custom = false;
  for (const auto& [status, number] : CountLeaves(root)) custom |= !IsStandard(status);
  RollUpBranch(root, custom && !root.items.empty());
}

int64_t ResultSummary::total() const {
  int64_t sum = 0;
  for (const auto& [status, number] : counts) sum += number;
  return sum;
}

int64_t ResultSummary::count(std::string_view status) const {
  const auto found = counts.find(std::string(status));
  return found == counts.end() ? 0 : found->second;
}

ResultSummary Summarize(const ResultItem& root, size_t max_failed) {
  ResultSummary summary{.name = root.name, .status = root.status, .counts = CountLeaves(root)};
  ListFailures(root, "", max_failed, summary);
  return summary;
}

void VisitLeaves(
    const ResultItem& root,
    const std::function<void(const std::string& above, const ResultItem& leaf)>& visit) {
  const auto walk = [&visit](const auto& self, const std::string& above, const ResultItem& item) {
    if (item.items.empty()) return visit(above, item);
    const std::string path = absl::StrCat(above, above.empty() ? "" : "|", item.name);
    for (const ResultItem& child : item.items) self(self, path, child);
  };
  walk(walk, "", root);
}

const ResultItem* FindItem(const ResultItem& root, std::string_view name) {
  if (root.name == name) return &root;
  for (const ResultItem& child : root.items) {
    if (const ResultItem* found = FindItem(child, name); found != nullptr) return found;
  }
  return nullptr;
}

}  // namespace muster
