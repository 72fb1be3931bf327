// From one file of a plugin's results to an item of its tree.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_RESULT_READER_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_RESULT_READER_H_

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "services/common/archive/item_budget.h"
#include "services/common/archive/result_item.h"

namespace muster {

// How a plugin's files are to be understood.
enum class ResultFormat { kRaw, kJunit, kGoJson, kManual };

// "junit" and its alias "e2e", "gojson", "manual"; anything else is raw.
ResultFormat ResultFormatFrom(std::string_view text);

// True if the file at `path` is to be read: its base name is one of `result_files`, or, without
// any, it ends in what the format takes by default (*.xml; *.json; *.yaml and *.yml; everything).
bool IsResultFile(ResultFormat format, std::span<const std::string> result_files,
                  std::string_view path);

// Takes a file's bytes piece by piece and holds no more of them than its items need. A file that
// cannot be understood, or is cut short, is an outcome and no error: its item has the status
// "unknown" and says why. Not thread-safe.
class ResultReader {
 public:
  virtual ~ResultReader() = default;
  virtual void Write(std::string_view data) = 0;
  // The file's item, once, after its last byte. Branches' statuses are left to RollUp.
  virtual ResultItem Finish() = 0;
};

// A reader for the file at `file`, relative to the plugin's folder. What it keeps is taken out of
// `budget`, which must outlive it.
std::unique_ptr<ResultReader> MakeResultReader(ResultFormat format, std::string_view file,
                                               ItemBudget& budget);

// The item of a file that could not be understood.
ResultItem UnknownFileItem(std::string_view file, std::string_view why);

// A file's item without children.
ResultItem FileItem(std::string_view file, std::string_view status);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_RESULT_READER_H_
