// A node of the tree that a plugin's results are boiled down to (sonobuoy_results.yaml).
//
// Leaves are single tests, files or errors; branches are suites, files, nodes; the root is the
// plugin. What the words mean, and how branches get their status from their leaves, is Sonobuoy's
// format, so that its own tools read ours and ours theirs.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_RESULT_ITEM_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_RESULT_ITEM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

inline constexpr std::string_view kPassed = "passed";
inline constexpr std::string_view kFailed = "failed";
inline constexpr std::string_view kSkipped = "skipped";
inline constexpr std::string_view kTimeout = "timeout";  // counts as a failure
inline constexpr std::string_view kUnknown = "unknown";

// Keys and values of ResultItem::meta.
inline constexpr char kMetaType[] = "type";
inline constexpr char kMetaFile[] = "file";    // path below plugins/<plugin>/
inline constexpr char kMetaError[] = "error";  // why the file could not be understood
inline constexpr std::string_view kTypeSummary = "summary";
inline constexpr std::string_view kTypeNode = "node";
inline constexpr std::string_view kTypeFile = "file";
// Stands for leaves that were left out of an over-long tree; their numbers by status are in its
// meta under "omitted-<status>".
inline constexpr std::string_view kTypeOmitted = "omitted";
inline constexpr std::string_view kMetaOmittedPrefix = "omitted-";

using StatusCounts = std::map<std::string, int64_t>;

struct ResultItem {
  std::string name;
  std::string status;  // one of the above, or a text of the plugin's own (manual results)
  std::map<std::string, std::string> meta;
  nlohmann::ordered_json details;  // an object, or null for none
  std::vector<ResultItem> items;

  bool operator==(const ResultItem&) const = default;
};

// Gives every branch its status, from the leaves up: failed if any leaf failed or timed out, else
// unknown if any is unknown or there is none, else passed. If any leaf has a status of the plugin's
// own, branches get numbers instead: "blue: 2, passed: 1". A leaf without a status becomes unknown.
void RollUp(ResultItem& root);

// Leaves by status, those that were left out included. Of a single leaf: itself.
StatusCounts CountLeaves(const ResultItem& item);

// What a report says of a tree.
struct ResultSummary {
  std::string name;
  std::string status;
  StatusCounts counts;
  std::vector<std::string> failed;  // names of failed and timed-out leaves, in order
  int64_t failed_not_listed = 0;

  int64_t total() const;
  int64_t count(std::string_view status) const;
};

// At most `max_failed` names are listed, without the "[It]" that Ginkgo puts before them.
ResultSummary Summarize(const ResultItem& root, size_t max_failed = 10'000);

// Calls `visit` for each leaf, in order, with the names of the items above it, joined by "|": what
// a detailed listing shows. A leaf with kMetaFile stands for that file's content.
void VisitLeaves(
    const ResultItem& root,
    const std::function<void(const std::string& above, const ResultItem& leaf)>& visit);

// The first item called `name`, depth first, the root included; nullptr if there is none.
const ResultItem* FindItem(const ResultItem& root, std::string_view name);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_RESULT_ITEM_H_
