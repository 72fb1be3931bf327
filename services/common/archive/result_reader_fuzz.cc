// Reads any bytes as a file of a result: JUnit, gojson and manual. The first byte selects the
// format, the second one where the file is cut into two pieces. The items fit into the budget, do
// not depend on the cut, and are written as YAML that can be parsed.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "services/common/archive/item_budget.h"
#include "services/common/archive/result_item.h"
#include "services/common/archive/result_reader.h"
#include "services/common/archive/results_yaml.h"
#include "services/common/archive/test_support.h"
#include "services/common/base/utf8.h"

namespace {

constexpr int64_t kBudget = int64_t{1} << 20;
constexpr int64_t kUnbudgeted = int64_t{64} << 10;  // the item of the file, and of omitted ones

int64_t SizeOf(const muster::ResultItem& item) {
  int64_t size = muster::FootprintOf(item);
  for (const muster::ResultItem& child : item.items) size += SizeOf(child);
  return size;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  constexpr muster::ResultFormat kFormats[] = {
      muster::ResultFormat::kJunit, muster::ResultFormat::kGoJson, muster::ResultFormat::kManual};
  const std::string_view file(reinterpret_cast<const char*>(data) + 2, size - 2);
  const auto read = [&](size_t cut) {
    muster::ItemBudget budget(kBudget);
    const auto reader = muster::MakeResultReader(kFormats[data[0] % 3], "file", budget);
    reader->Write(file.substr(0, cut));
    reader->Write(file.substr(cut));
    return reader->Finish();
  };
  muster::ResultItem item = read(std::min<size_t>(data[1], file.size()));
  if (SizeOf(item) > kBudget + kUnbudgeted) std::abort();
  if (item != read(file.size())) std::abort();
  muster::RollUp(item);
  muster::StringSink sink;
  if (!muster::WriteResultsYaml(item, sink).ok()) std::abort();
  if (!muster::IsUtf8(sink.text) || !muster::ParseResultsYaml(sink.text).ok()) std::abort();
  return 0;
}
