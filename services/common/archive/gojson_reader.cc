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

// The nesting of an event: those of Go have one level.
constexpr size_t kMaxDepth = 64;

// Finds the two fields of an event without holding its other values, which may be many. Go matches
// keys without regard to case; the last one counts.
class EventHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool start_object(std::size_t) override { return Open(); }
  bool start_array(std::size_t) override { return Open(); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(std::string& name) override {
    field_ = nullptr;
    if (depth_ != 1) return true;
    if (absl::EqualsIgnoreCase(name, "action")) field_ = &action_;
    if (absl::EqualsIgnoreCase(name, "test")) field_ = &test_;
    return true;
  }
  bool string(std::string& value) override {
    if (depth_ == 1 && field_ != nullptr) *field_ = {.text = std::move(value)};
    return true;
  }
  bool null() override { return true; }
  bool boolean(bool) override { return OtherType(); }
  bool number_integer(number_integer_t) override { return OtherType(); }
  bool number_unsigned(number_unsigned_t) override { return OtherType(); }
  bool number_float(number_float_t, const std::string&) override { return OtherType(); }
  bool binary(nlohmann::json::binary_t&) override { return OtherType(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override {
    return false;
  }

  bool wrong_type() const { return action_.wrong_type || test_.wrong_type; }
  const std::string& action() const { return action_.text; }
  const std::string& test() const { return test_.text; }

 private:
  struct Field {
    std::string text;
    bool wrong_type = false;
  };

  bool OtherType() {
    if (depth_ == 1 && field_ != nullptr) *field_ = {.text = "", .wrong_type = true};
    return true;
  }
  bool Open() { return OtherType() && ++depth_ <= kMaxDepth; }
  bool Close() {
    --depth_;
    return true;
  }

  size_t depth_ = 0;
  Field action_;
  Field test_;
  Field* field_ = nullptr;
};

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
  EventHandler event;
  if (!nlohmann::json::sax_parse(event_, &event) || event.wrong_type()) {
    error_ = absl::StrCat("event ", events_, " is no test event");
    return;
  }
  if (event.test().empty() || IsProgress(event.action())) return;
  items_.Add(ResultItem{.name = event.test(), .status = std::string(StatusOf(event.action()))});
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
