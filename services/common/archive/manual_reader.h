// Reads results that a plugin summarised itself, as a tree of result items.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_MANUAL_READER_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_MANUAL_READER_H_

#include <string>
#include <string_view>

#include "services/common/archive/result_reader.h"

namespace muster {

// Copies status, details and items unchanged. A file may be 16 MiB long.
class ManualReader : public ResultReader {
 public:
  ManualReader(std::string_view file, ItemBudget& budget);

  void Write(std::string_view data) override;
  ResultItem Finish() override;

 private:
  const std::string file_;
  ItemBudget& budget_;
  std::string text_;
  bool too_long_ = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_MANUAL_READER_H_
