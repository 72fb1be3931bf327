#include "services/agent/docker/progress_lines.h"

#include <cstddef>
#include <utility>

#include "services/agent/docker/engine_json.h"
#include "services/common/base/utf8.h"

namespace muster {
namespace {

constexpr size_t kMaxLine = size_t{64} << 10;
constexpr size_t kMaxErrorText = size_t{1} << 10;

}  // namespace

ProgressLines::ProgressLines(std::function<void(const nlohmann::json& object)> handle)
    : handle_(std::move(handle)) {}

void ProgressLines::Feed(std::string_view piece) {
  for (const char c : piece) {
    if (c == '\n') {
      HandleLine();
      line_.clear();
    } else if (line_.size() < kMaxLine) {
      line_.push_back(c);
    }
  }
}

void ProgressLines::HandleLine() {
  const auto json = nlohmann::json::parse(line_, nullptr, /*allow_exceptions=*/false);
  if (const auto error = Member<std::string>(json, "error", ""); !error.empty()) {
    failure_ = std::string(CutUtf8(error, kMaxErrorText));
  } else if (json.is_object() && handle_) {
    handle_(json);
  }
}

}  // namespace muster
