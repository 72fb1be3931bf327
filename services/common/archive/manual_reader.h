// Results that a plugin summed up by itself, in the form of our own tree.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_MANUAL_READER_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_MANUAL_READER_H_

#include <string>
#include <string_view>

#include "services/common/archive/result_reader.h"

namespace muster {

// Status, details and items are taken as given. A file may be 16 MiB long.
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
