#include "services/common/archive/manual_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/archive/results_yaml.h"
#include "services/common/archive/yaml_tree.h"
#include "services/common/base/utf8.h"

namespace muster {
namespace {

constexpr size_t kMaxFile = size_t{16} << 20;

// The limits of one file: about 50 MB and a few seconds.
constexpr YamlLimits kLimits = {.depth = 64, .nodes = 500'000, .cpu = absl::Seconds(20)};

// Statuses are the plugin's own texts, and roll up to the branches.
constexpr size_t kMaxStatus = 256;

// Returns the items that the budget permits.
std::vector<ResultItem> Bounded(std::vector<ResultItem> items, ItemBudget& budget) {
  BoundedItems bounded(budget);
  for (ResultItem& item : items) {
    item.items = Bounded(std::move(item.items), budget);
    item.status = std::string(CutUtf8(item.status, kMaxStatus));
    bounded.Add(std::move(item));
  }
  return bounded.Finish();
}

}  // namespace

ManualReader::ManualReader(std::string_view file, ItemBudget& budget)
    : file_(file), budget_(budget) {}

void ManualReader::Write(std::string_view data) {
  too_long_ |= text_.size() + data.size() > kMaxFile;
  if (too_long_) {
    text_ = std::string();
  } else {
    text_.append(data);
  }
}

ResultItem ManualReader::Finish() {
  if (too_long_) {
    return UnknownFileItem(file_, absl::StrCat("longer than ", kMaxFile, " bytes"));
  }
  if (budget_.cpu() <= absl::ZeroDuration()) {
    return UnknownFileItem(file_, "not read, because other files took too long to read");
  }
  YamlLimits limits = kLimits;
  limits.cpu = std::min(limits.cpu, budget_.cpu());
  const absl::Duration start = ThreadCpu();
  absl::StatusOr<ResultItem> given = ParseResultsYaml(text_, limits);
  budget_.SpendCpu(ThreadCpu() - start);
  text_ = std::string();
  if (!given.ok()) {
    return UnknownFileItem(
        file_, absl::StrCat("cannot be read as manual results: ", given.status().message()));
  }
  ResultItem item = FileItem(file_, CutUtf8(given->status, kMaxStatus));
  item.details = std::move(given->details);
  item.items = Bounded(std::move(given->items), budget_);
  return item;
}

}  // namespace muster
