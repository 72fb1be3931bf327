#include "services/common/templates/yaml_to_json.h"

#include <yaml-cpp/yaml.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/utf8.h"
#include "services/common/base/yaml_documents.h"
#include "services/common/errors/templates.h"
#include "services/common/templates/exact_json.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxText = size_t{256} << 10;
constexpr int kMaxValues = 20'000;
constexpr int kMaxDepth = 32;

bool IsOneOf(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words) {
    if (text == word) return true;
  }
  return false;
}

Json PlainScalar(const std::string& text) {
  if (IsOneOf(text, {"", "~", "null", "Null", "NULL"})) return nullptr;
  if (IsOneOf(text, {"true", "True", "TRUE"})) return true;
  if (IsOneOf(text, {"false", "False", "FALSE"})) return false;
  // "0x10", "1e3" and "inf" are numbers for Abseil; the first is text here, the last no JSON.
  const bool is_numeric = text.find_first_not_of("+-0123456789.eE") == std::string::npos &&
                          text.find_first_of("0123456789") != std::string::npos;
  if (!is_numeric) return text;
  if (auto json = ParseExactJson(text); json.fault == JsonFault::kNone) return json.value;
  if (int64_t integer = 0; absl::SimpleAtoi(text, &integer)) return integer;
  if (double number = 0; absl::SimpleAtod(text, &number) && std::isfinite(number)) return number;
  return text;
}

// Converts the nodes of a document. Aliases share nodes, so the number of values is what grows.
class Converter {
 public:
  absl::StatusOr<Json> Convert(const YAML::Node& node, int depth) {
    if (++values_ > kMaxValues)
      return Fault(node, absl::StrCat("more than ", kMaxValues, " values"));
    if (depth > kMaxDepth) return Fault(node, absl::StrCat("more than ", kMaxDepth, " levels"));
    switch (node.Type()) {
      case YAML::NodeType::Scalar:
        // yaml-cpp gives the tag "!" to a text in quotes, and "?" to a plain one.
        return node.Tag() == "?" || node.Tag().empty() ? PlainScalar(node.Scalar())
                                                       : Json(node.Scalar());
      case YAML::NodeType::Sequence: {
        Json list = Json::array();
        for (const YAML::Node& element : node) {
          ASSIGN_OR_RETURN(auto value, Convert(element, depth + 1));
          list.push_back(std::move(value));
        }
        return list;
      }
      case YAML::NodeType::Map: {
        Json map = Json::object();
        for (const auto& entry : node) {
          if (!entry.first.IsScalar()) return Fault(entry.first, "a key is not plain text");
          const std::string& name = entry.first.Scalar();
          if (map.contains(name))
            return Fault(entry.first, absl::StrCat("the key ", name, " is there twice"));
          ASSIGN_OR_RETURN(map[name], Convert(entry.second, depth + 1));
        }
        return map;
      }
      default:
        return Json(nullptr);
    }
  }

  static absl::Status Fault(const YAML::Node& at, const std::string& problem) {
    return errors::InvalidDocument(absl::StrCat("line ", at.Mark().line + 1, ": ", problem));
  }

 private:
  int values_ = 0;
};

}  // namespace

absl::StatusOr<Json> YamlToJson(std::string_view text) {
  if (text.size() > kMaxText) return errors::InvalidDocument("it has more than 256 KiB");
  if (!IsUtf8(text)) return errors::InvalidDocument("it is not UTF-8");
  try {
    const std::vector<YAML::Node> documents = LoadYamlDocuments(std::string(text));
    if (documents.size() != 1) {
      return errors::InvalidDocument(
          absl::StrCat("it has ", documents.size(), " documents, want 1"));
    }
    return Converter().Convert(documents[0], 1);
  } catch (const YAML::Exception& e) {
    return errors::InvalidDocument(
        absl::StrCat("line ", e.mark.line + 1, ": not YAML: ", YamlFault(e)));
  }
}

}  // namespace muster
