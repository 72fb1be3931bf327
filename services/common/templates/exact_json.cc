#include "services/common/templates/exact_json.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/strings.h"

namespace muster {
namespace {

// Builds a value from the events of the parser.
template <typename BasicJson>
class Builder final : public nlohmann::json_sax<BasicJson> {
 public:
  using Base = nlohmann::json_sax<BasicJson>;
  using string_t = typename Base::string_t;
  using binary_t = typename Base::binary_t;

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(int64_t value) override { return Add(value); }
  bool number_unsigned(uint64_t value) override { return Add(value); }
  bool number_float(double value, const string_t& text) override {
    if (BasicJson(value).dump() == text) return Add(value);
    return Add(BasicJson::binary({text.begin(), text.end()}));
  }
  bool string(string_t& value) override { return Add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return Open(BasicJson::object()); }
  bool key(string_t& name) override {
    if (skipped_ > 0) return true;
    if (open_.back()->contains(name)) fault_ = JsonFault::kTwice;  // if the rest is JSON
    member_ = &(*open_.back())[name];
    return true;
  }
  bool end_object() override { return Close(); }
  bool start_array(size_t) override { return Open(BasicJson::array()); }
  bool end_array() override { return Close(); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    fault_ = JsonFault::kNotJson;
    return false;
  }

  ExactJson<BasicJson> Result() {
    if (fault_ != JsonFault::kNone) return {.value = nullptr, .fault = fault_};
    return {.value = std::move(root_), .fault = fault_};
  }

 private:
  BasicJson* Place() {
    if (open_.empty()) return &root_;
    return open_.back()->is_array() ? &open_.back()->emplace_back() : member_;
  }

  bool Add(BasicJson value) {
    if (skipped_ == 0) *Place() = std::move(value);
    return true;
  }

  bool Open(BasicJson value) {
    if (skipped_ > 0 || open_.size() >= kMaxJsonDepth) {
      fault_ = JsonFault::kTooDeep;  // if the rest is JSON
      ++skipped_;
      return true;
    }
    BasicJson* const place = Place();
    *place = std::move(value);
    open_.push_back(place);
    return true;
  }

  bool Close() {
    if (skipped_ > 0) {
      --skipped_;
    } else {
      open_.pop_back();
    }
    return true;
  }

  BasicJson root_;
  std::vector<BasicJson*> open_;  // each contains the next; only the last one changes
  BasicJson* member_ = nullptr;   // of the last one, if it is an object
  size_t skipped_ = 0;            // open ones below the last level
  JsonFault fault_ = JsonFault::kNone;
};

template <typename BasicJson>
class Writer {
 public:
  explicit Writer(int indent) : indent_(indent) {}

  void Write(const BasicJson& value, int level) {
    if (value.is_binary()) {
      text_.append(value.get_binary().begin(), value.get_binary().end());
    } else if (!value.is_structured() || value.empty()) {
      text_ += Plain(value);
    } else {
      text_ += value.is_object() ? '{' : '[';
      bool first = true;
      for (const auto& item : value.items()) {
        if (!std::exchange(first, false)) text_ += ',';
        NewLine(level + 1);
        if (value.is_object()) text_ += Plain(item.key()) + (indent_ > 0 ? ": " : ":");
        Write(item.value(), level + 1);
      }
      NewLine(level);
      text_ += value.is_object() ? '}' : ']';
    }
  }

  std::string Take() { return std::move(text_); }

 private:
  static std::string Plain(const BasicJson& value) {
    return value.dump(-1, ' ', false, BasicJson::error_handler_t::replace);
  }

  void NewLine(int level) {
    if (indent_ > 0) text_.append(1, '\n').append(static_cast<size_t>(indent_) * level, ' ');
  }

  const int indent_;
  std::string text_;
};

}  // namespace

std::string FaultText(JsonFault fault) {
  switch (fault) {
    case JsonFault::kNone:
      return "";
    case JsonFault::kNotJson:
      return "is not JSON";
    case JsonFault::kTooDeep:
      return absl::StrCat("has more than ", kMaxJsonDepth, " levels");
    case JsonFault::kTwice:
      return "has two members of one name in an object";
  }
  return "";
}

template <typename BasicJson>
ExactJson<BasicJson> ParseExactJson(std::string_view text) {
  Builder<BasicJson> builder;
  BasicJson::sax_parse(text, &builder);
  return builder.Result();
}

template <typename BasicJson>
std::string ExactJsonText(const BasicJson& value, int indent) {
  Writer<BasicJson> writer(indent);
  writer.Write(value, 0);
  return writer.Take();
}

std::optional<std::string_view> NumberText(const nlohmann::json& value) {
  if (!value.is_binary()) return std::nullopt;
  const auto& bytes = value.get_binary();
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

nlohmann::json WithDoubles(const nlohmann::json& value) {
  if (const auto text = NumberText(value)) {
    double number = 0;
    return absl::SimpleAtod(ToAbsl(*text), &number) ? number : 0;
  }
  nlohmann::json copy = value;
  if (value.is_structured()) {
    for (nlohmann::json& part : copy) part = WithDoubles(part);
  }
  return copy;
}

template ExactJson<nlohmann::json> ParseExactJson(std::string_view);
template ExactJson<nlohmann::ordered_json> ParseExactJson(std::string_view);
template std::string ExactJsonText(const nlohmann::json&, int);
template std::string ExactJsonText(const nlohmann::ordered_json&, int);

}  // namespace muster
