#include "services/common/archive/result_reader.h"

#include <algorithm>

#include "services/common/archive/gojson_reader.h"
#include "services/common/archive/junit_reader.h"
#include "services/common/archive/manual_reader.h"

namespace muster {
namespace {

std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// A raw file passes because it exists.
class RawReader : public ResultReader {
 public:
  explicit RawReader(std::string_view file) : file_(file) {}
  void Write(std::string_view) override {}
  ResultItem Finish() override { return FileItem(file_, kPassed); }

 private:
  const std::string file_;
};

}  // namespace

ResultFormat ResultFormatFrom(std::string_view text) {
  if (text == "junit" || text == "e2e") return ResultFormat::kJunit;
  if (text == "gojson") return ResultFormat::kGoJson;
  if (text == "manual") return ResultFormat::kManual;
  return ResultFormat::kRaw;
}

bool IsResultFile(ResultFormat format, std::span<const std::string> result_files,
                  std::string_view path) {
  const std::string_view base = BaseName(path);
  if (!result_files.empty()) {
    return std::find(result_files.begin(), result_files.end(), base) != result_files.end();
  }
  switch (format) {
    case ResultFormat::kJunit:
      return base.ends_with(".xml");
    case ResultFormat::kGoJson:
      return base.ends_with(".json");
    case ResultFormat::kManual:
      return base.ends_with(".yaml") || base.ends_with(".yml");
    case ResultFormat::kRaw:
      break;
  }
  return true;
}

std::unique_ptr<ResultReader> MakeResultReader(ResultFormat format, std::string_view file,
                                               ItemBudget& budget) {
  switch (format) {
    case ResultFormat::kJunit:
      return std::make_unique<JunitReader>(file, budget);
    case ResultFormat::kGoJson:
      return std::make_unique<GoJsonReader>(file, budget);
    case ResultFormat::kManual:
      return std::make_unique<ManualReader>(file, budget);
    case ResultFormat::kRaw:
      break;
  }
  return std::make_unique<RawReader>(file);
}

ResultItem FileItem(std::string_view file, std::string_view status) {
  ResultItem item{.name = std::string(BaseName(file)), .status = std::string(status)};
  item.meta[kMetaType] = std::string(kTypeFile);
  item.meta[kMetaFile] = std::string(file);
  return item;
}

ResultItem UnknownFileItem(std::string_view file, std::string_view why) {
  ResultItem item = FileItem(file, kUnknown);
  item.meta[kMetaError] = std::string(why);
  return item;
}

}  // namespace muster
