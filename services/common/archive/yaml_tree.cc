#include "services/common/archive/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>
#include <istream>
#include <streambuf>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

// An istream over a buffer of the caller. It ends early when the parser used too much time: some
// short texts take very long.
class ViewBuffer : public std::streambuf {
 public:
  ViewBuffer(std::string_view text, absl::Duration cpu) : text_(text), until_(ThreadCpu() + cpu) {}

  bool out_of_time() const { return out_of_time_; }

 protected:
  int_type underflow() override {
    constexpr size_t kPiece = 4096;
    out_of_time_ = out_of_time_ || ThreadCpu() >= until_;
    if (text_.empty() || out_of_time_) return traits_type::eof();
    char* begin = const_cast<char*>(text_.data());  // only read
    const size_t size = std::min(text_.size(), kPiece);
    text_.remove_prefix(size);
    setg(begin, begin, begin + size);
    return traits_type::to_int_type(*begin);
  }

 private:
  std::string_view text_;
  const absl::Duration until_;
  bool out_of_time_ = false;
};

template <typename T>
bool ParseWhole(std::string_view text, T& value) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

Json PlainScalar(const std::string& text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") {
    return nullptr;
  }
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  int64_t integer = 0;
  if (ParseWhole(text, integer)) return integer;
  double number = 0;
  // "inf" and "nan" have no place in JSON and stay text.
  if (ParseWhole(text, number) && std::isfinite(number)) return number;
  return text;
}

class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const YamlLimits& limits) : limits_(limits) {}

  Json Finish() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { Scalar(mark, Json(), ""); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw YAML::ParserException(mark, "aliases are not accepted");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& value) override {
    Scalar(mark, tag == "?" ? PlainScalar(value) : Json(value), value);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    Open(mark, Json::array());
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    Open(mark, Json::object());
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Level {
    Json value;
    std::string key;  // of a map: the key whose value comes next
    bool has_key = false;
    // The position of each key of a map, because the map itself searches linearly.
    absl::flat_hash_map<std::string, size_t> positions;
  };

  void Count(const YAML::Mark& mark) {
    if (++nodes_ > limits_.nodes) throw YAML::ParserException(mark, "too many values");
  }

  void Scalar(const YAML::Mark& mark, Json value, const std::string& text) {
    Count(mark);
    if (!levels_.empty() && levels_.back().value.is_object() && !levels_.back().has_key) {
      levels_.back().key = text;
      levels_.back().has_key = true;
    } else {
      Place(std::move(value));
    }
  }

  void Open(const YAML::Mark& mark, Json value) {
    Count(mark);
    if (levels_.size() >= limits_.depth) throw YAML::ParserException(mark, "nested too deeply");
    if (!levels_.empty() && levels_.back().value.is_object() && !levels_.back().has_key) {
      throw YAML::ParserException(mark, "a key has to be a scalar");
    }
    levels_.push_back({std::move(value), "", false, {}});
  }

  void Close() {
    Json value = std::move(levels_.back().value);
    levels_.pop_back();
    Place(std::move(value));
  }

  void Place(Json value) {
    if (levels_.empty()) {
      root_ = std::move(value);
    } else if (levels_.back().value.is_array()) {
      levels_.back().value.push_back(std::move(value));
    } else {
      // The last value of a repeated key wins.
      Level& level = levels_.back();
      // As a vector: the map's own access searches it.
      auto& members =
          static_cast<Json::object_t::Container&>(level.value.get_ref<Json::object_t&>());
      const auto [it, added] = level.positions.try_emplace(level.key, members.size());
      if (added) {
        members.emplace_back(level.key, std::move(value));
      } else {
        members[it->second].second = std::move(value);
      }
      level.has_key = false;
    }
  }

  const YamlLimits limits_;
  size_t nodes_ = 0;
  std::vector<Level> levels_;
  Json root_;
};

}  // namespace

absl::Duration ThreadCpu() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return absl::DurationFromTimespec(used);
}

absl::StatusOr<nlohmann::ordered_json> ParseYamlTree(std::string_view text,
                                                     const YamlLimits& limits) {
  ViewBuffer buffer(text, limits.cpu);
  std::istream in(&buffer);
  TreeBuilder builder(limits);
  try {
    YAML::Parser parser(in);
    const bool found = parser.HandleNextDocument(builder);
    if (buffer.out_of_time()) return absl::InvalidArgumentError("it takes too long to read");
    if (!found) return Json();
  } catch (const YAML::Exception& e) {
    if (buffer.out_of_time()) return absl::InvalidArgumentError("it takes too long to read");
    return absl::InvalidArgumentError(
        e.mark.is_null() ? e.msg : absl::StrCat("line ", e.mark.line + 1, ": ", e.msg));
  }
  return builder.Finish();
}

}  // namespace muster
