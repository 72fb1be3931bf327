#include "services/common/archive/gojson_reader.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/strings.h"

namespace muster {
namespace {

constexpr size_t kMaxEvent = size_t{16} << 20;

// Go matches keys without regard to case.
struct Fields {
  std::string action;
  std::string test;
  bool wrong_type = false;
};

Fields FieldsOf(const nlohmann::json& event) {
  Fields fields;
  for (const auto& [key, value] : event.items()) {
    const bool action = absl::EqualsIgnoreCase(key, "action");
    if (!action && !absl::EqualsIgnoreCase(key, "test")) continue;
    if (value.is_null()) continue;
    if (!value.is_string()) {
      fields.wrong_type = true;
    } else {
      (action ? fields.action : fields.test) = value.get<std::string>();
    }
  }
  return fields;
}

bool IsProgress(std::string_view action) {
  return action == "start" || action == "run" || action == "pause" || action == "cont" ||
         action == "bench" || action == "output";
}

std::string_view StatusOf(std::string_view action) {
  if (action == "pass") return kPassed;
  if (action == "skip") return kSkipped;
  if (action == "fail") return kFailed;
  return kUnknown;
}

}  // namespace

GoJsonReader::GoJsonReader(std::string_view file, ItemBudget& budget)
    : file_(file), items_(budget) {}

void GoJsonReader::Write(std::string_view data) {
  for (size_t i = 0; i < data.size() && error_.empty(); ++i) Parse(data[i]);
}

void GoJsonReader::Parse(char c) {
  if (depth_ == 0) {
    if (absl::ascii_isspace(static_cast<unsigned char>(c))) return;
    if (c != '{') {
      error_ = absl::StrCat("event ", events_ + 1, " is no JSON object");
      return;
    }
  }
  if (event_.size() >= kMaxEvent) {
    error_ = absl::StrCat("event ", events_ + 1, " is longer than ", kMaxEvent, " bytes");
    return;
  }
  event_.push_back(c);
  if (in_string_) {
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      in_string_ = false;
    }
  } else if (c == '"') {
    in_string_ = true;
  } else if (c == '{' || c == '[') {
    ++depth_;
  } else if ((c == '}' || c == ']') && --depth_ == 0) {
    Event();
    event_.clear();
  }
}

void GoJsonReader::Event() {
  ++events_;
  const nlohmann::json event =
      nlohmann::json::parse(event_, nullptr, /*allow_exceptions=*/false, /*ignore_comments=*/false);
  const Fields fields = event.is_object() ? FieldsOf(event) : Fields{.wrong_type = true};
  if (fields.wrong_type) {
    error_ = absl::StrCat("event ", events_, " is no test event");
    return;
  }
  if (fields.test.empty() || IsProgress(fields.action)) return;
  items_.Add(ResultItem{.name = fields.test, .status = std::string(StatusOf(fields.action))});
}

ResultItem GoJsonReader::Finish() {
  if (error_.empty() && depth_ > 0) {
    error_ = absl::StrCat("it ends in the middle of event ", events_ + 1);
  }
  if (!error_.empty()) {
    return UnknownFileItem(file_, absl::StrCat("cannot be read as go test -json: ", error_));
  }
  if (items_.empty()) return UnknownFileItem(file_, "no test of go test -json came to its end");
  ResultItem item = FileItem(file_, kPassed);
  item.items = items_.Finish();
  return item;
}

}  // namespace muster
