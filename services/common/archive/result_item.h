// An item of the tree that summarises a plugin's results (sonobuoy_results.yaml).
//
// Leaves are single tests, files or errors; branches are suites, files and nodes; the root is the
// plugin. The words, and the way in which branches get their status from their leaves, follow
// Sonobuoy's format, so that the tools of both projects read these files.
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
inline constexpr char kMetaFile[] = "file";    // path in plugins/<plugin>/
inline constexpr char kMetaError[] = "error";  // the fault of a file that cannot be parsed
inline constexpr std::string_view kTypeSummary = "summary";
inline constexpr std::string_view kTypeNode = "node";
inline constexpr std::string_view kTypeFile = "file";
// Stands for the omitted leaves of a tree that is too large. Its meta contains their number by
// status under "omitted-<status>".
inline constexpr std::string_view kTypeOmitted = "omitted";
inline constexpr std::string_view kMetaOmittedPrefix = "omitted-";

using StatusCounts = std::map<std::string, int64_t>;

struct ResultItem {
  std::string name;
  std::string status;  // one of the statuses above, or the plugin's own text (manual results)
  std::map<std::string, std::string> meta;
  nlohmann::ordered_json details;  // an object, or null for none
  std::vector<ResultItem> items;

  bool operator==(const ResultItem&) const = default;
};

// Sets the status of every branch from its leaves: failed if a leaf failed or timed out, otherwise
// unknown if a leaf is unknown or there is none, otherwise passed. If a leaf has a custom status,
// branches get counts instead: "blue: 2, passed: 1". Statuses beyond 100 different ones are counted
// as "other". A leaf without a status becomes unknown.
void RollUp(ResultItem& root);

// Returns the number of leaves by status, including omitted ones. A leaf counts itself.
StatusCounts CountLeaves(const ResultItem& item);

struct FailedLeaf {
  std::string node;  // empty outside the tree of a node
  std::string name;

  bool operator==(const FailedLeaf&) const = default;
};

// The summary of a tree for a report.
struct ResultSummary {
  std::string name;
  std::string status;
  StatusCounts counts;
  std::vector<FailedLeaf> failed;  // failed and timed-out leaves, in order
  int64_t failed_not_listed = 0;

  int64_t total() const;
  int64_t count(std::string_view status) const;
};

// Lists at most `max_failed` leaves; their names are without the prefix "[It]" of Ginkgo.
ResultSummary Summarize(const ResultItem& root, size_t max_failed = 10'000);

// Calls `visit` for each leaf, in order, with the names of its ancestors, joined by "|", as a
// detailed listing shows them. A leaf with kMetaFile stands for the content of that file.
void VisitLeaves(
    const ResultItem& root,
    const std::function<void(const std::string& above, const ResultItem& leaf)>& visit);

// Returns the first item called `name`, depth first, including the root; nullptr if there is none.
const ResultItem* FindItem(const ResultItem& root, std::string_view name);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_RESULT_ITEM_H_
