// Converts one file of a plugin's results to an item of its tree.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_RESULT_READER_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_RESULT_READER_H_

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "services/common/archive/item_budget.h"
#include "services/common/archive/result_item.h"

namespace muster {

// The format of a plugin's files.
enum class ResultFormat { kRaw, kJunit, kGoJson, kManual };

// Parses "junit" and its alias "e2e", "gojson" and "manual"; any other text is raw.
ResultFormat ResultFormatFrom(std::string_view text);

// Returns true if the file at `path` must be read: its base name is one of `result_files`, or, if
// that is empty, it has the format's extension (*.xml; *.json; *.yaml and *.yml; all files).
bool IsResultFile(ResultFormat format, std::span<const std::string> result_files,
                  std::string_view path);

// Parses a file in pieces and holds only the bytes that its items need. A file that cannot be
// parsed, or is incomplete, is not an error: its item has the status "unknown" and the reason. Not
// thread-safe.
class ResultReader {
 public:
  virtual ~ResultReader() = default;
  virtual void Write(std::string_view data) = 0;
  // Returns the file's item. Call it once, after the last byte. RollUp sets the statuses of
  // branches.
  virtual ResultItem Finish() = 0;
};

// Returns a reader for the file at `file`, relative to the plugin's folder. It reserves memory in
// `budget`, which must outlive it.
std::unique_ptr<ResultReader> MakeResultReader(ResultFormat format, std::string_view file,
                                               ItemBudget& budget);

// Returns the item of a file that cannot be parsed.
ResultItem UnknownFileItem(std::string_view file, std::string_view why);

// Returns a file's item without children.
ResultItem FileItem(std::string_view file, std::string_view status);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_RESULT_READER_H_
