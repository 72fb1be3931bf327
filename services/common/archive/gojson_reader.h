// The events of `go test -json`.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_GOJSON_READER_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_GOJSON_READER_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "services/common/archive/result_reader.h"

namespace muster {

// JSON objects one after another, on lines of their own or not. Each event that ends a named test
// ("pass", "skip", "fail") is a leaf; starts and output are dropped, and an action that is not
// known gives a leaf of status "unknown". An event may be 16 MiB long.
class GoJsonReader : public ResultReader {
 public:
  GoJsonReader(std::string_view file, ItemBudget& budget);

  void Write(std::string_view data) override;
  ResultItem Finish() override;

 private:
  void Take(char c);
  void Event();

  const std::string file_;
  BoundedItems items_;
  std::string error_;
  int64_t events_ = 0;
  // Where the object under way ends: how deep we are, and whether within a string.
  std::string event_;
  int depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_GOJSON_READER_H_
