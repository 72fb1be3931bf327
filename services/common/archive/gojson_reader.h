// Reads the events of `go test -json`.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_GOJSON_READER_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_GOJSON_READER_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "services/common/archive/result_reader.h"

namespace muster {

// Reads JSON objects with or without line breaks between them. Each event that ends a named test
// ("pass", "skip", "fail") becomes a leaf. Starts and output are ignored, and an unknown action
// becomes a leaf with status "unknown". An event may be 16 MiB long.
class GoJsonReader : public ResultReader {
 public:
  GoJsonReader(std::string_view file, ItemBudget& budget);

  void Write(std::string_view data) override;
  ResultItem Finish() override;

 private:
  void Parse(char c);
  void Event();

  const std::string file_;
  BoundedItems items_;
  std::string error_;
  int64_t events_ = 0;
  // The current object, with the state that finds its end: nesting depth, and whether a string is
  // open.
  std::string event_;
  int depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_GOJSON_READER_H_
