#include "services/common/base/suggestion.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

// How many letters to add, drop or change to make one from the other.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, change}));
    }
  }
  return row.back();
}

std::string_view LastPart(std::string_view name) { return name.substr(name.rfind('.') + 1); }

}  // namespace

std::string Suggestion(std::string_view name, std::span<const std::string> known) {
  const std::string* best = nullptr;
  const size_t most = std::min(std::max<size_t>(2, name.size() / 4), name.size() / 2);
  size_t best_distance = most + 1;
  for (const std::string& candidate : known) {
    size_t distance = EditDistance(name, candidate);
    if (LastPart(name) == LastPart(candidate)) distance = std::min<size_t>(distance, 1);
    if (distance < best_distance) {
      best_distance = distance;
      best = &candidate;
    }
  }
  return best == nullptr ? "" : absl::StrCat("; did you mean ", *best, "?");
}

}  // namespace muster
