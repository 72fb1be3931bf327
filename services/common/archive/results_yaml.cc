#include "services/common/archive/results_yaml.h"

#include <yaml-cpp/yaml.h>

#include <ostream>
#include <streambuf>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/archive/yaml_tree.h"
#include "services/common/base/status_macros.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

// An ostream into a ByteSink, in pieces of 64 KiB.
class SinkBuffer : public std::streambuf {
 public:
  explicit SinkBuffer(ByteSink& sink) : sink_(sink) { pending_.reserve(kPiece); }

  absl::Status Finish() {
    Flush();
    return status_;
  }

 protected:
  int_type overflow(int_type c) override {
    if (c != traits_type::eof()) pending_.push_back(traits_type::to_char_type(c));
    if (pending_.size() >= kPiece) Flush();
    return status_.ok() ? traits_type::not_eof(c) : traits_type::eof();
  }
  std::streamsize xsputn(const char* data, std::streamsize size) override {
    pending_.append(data, static_cast<size_t>(size));
    if (pending_.size() >= kPiece) Flush();
    return status_.ok() ? size : 0;
  }

 private:
  static constexpr size_t kPiece = 64 * 1024;

  void Flush() {
    if (status_.ok() && !pending_.empty()) status_ = sink_.Write(pending_);
    pending_.clear();
  }

  ByteSink& sink_;
  absl::Status status_;
  std::string pending_;
};

class CountingSink : public ByteSink {
 public:
  absl::Status Write(std::string_view data) override {
    size += static_cast<int64_t>(data.size());
    return absl::OkStatus();
  }
  int64_t size = 0;
};

// Quotes every text except the known words, so that no plugin text becomes a number or a date.
void EmitText(YAML::Emitter& out, const std::string& text) {
  const bool word = text == kPassed || text == kFailed || text == kSkipped || text == kTimeout ||
                    text == kUnknown;
  if (!word) out << YAML::DoubleQuoted;
  out << text;
}

void EmitJson(YAML::Emitter& out, const Json& value) {
  if (value.is_object()) {
    out << YAML::BeginMap;
    for (const auto& [key, child] : value.items()) {
      out << YAML::Key << YAML::DoubleQuoted << key << YAML::Value;
      EmitJson(out, child);
    }
    out << YAML::EndMap;
  } else if (value.is_array()) {
    out << YAML::BeginSeq;
    for (const Json& child : value) EmitJson(out, child);
    out << YAML::EndSeq;
  } else if (value.is_string()) {
    EmitText(out, value.get_ref<const std::string&>());
  } else if (value.is_null()) {
    out << YAML::Null;
  } else {
    out << value.dump();
  }
}

void EmitItem(YAML::Emitter& out, const ResultItem& item) {
  out << YAML::BeginMap << YAML::Key << "name" << YAML::Value;
  EmitText(out, item.name);
  out << YAML::Key << "status" << YAML::Value;
  EmitText(out, item.status);
  if (!item.meta.empty()) {
    out << YAML::Key << "meta" << YAML::Value << YAML::BeginMap;
    for (const auto& [key, value] : item.meta) {
      out << YAML::Key << YAML::DoubleQuoted << key << YAML::Value;
      EmitText(out, value);
    }
    out << YAML::EndMap;
  }
  if (item.details.is_object() && !item.details.empty()) {
    out << YAML::Key << "details" << YAML::Value;
    EmitJson(out, item.details);
  }
  if (!item.items.empty()) {
    out << YAML::Key << "items" << YAML::Value << YAML::BeginSeq;
    for (const ResultItem& child : item.items) EmitItem(out, child);
    out << YAML::EndSeq;
  }
  out << YAML::EndMap;
}

std::string TextOf(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::Status FillItem(Json& from, int depth, ResultItem& item) {
  constexpr int kMaxDepth = 30;
  if (!from.is_object()) return absl::InvalidArgumentError("an item is not a map");
  if (depth > kMaxDepth) return absl::InvalidArgumentError("items are nested too deeply");
  if (from.contains("name")) item.name = TextOf(from["name"]);
  if (from.contains("status")) item.status = TextOf(from["status"]);
  if (const auto meta = from.find("meta"); meta != from.end() && meta->is_object()) {
    for (const auto& [key, value] : meta->items()) item.meta[key] = TextOf(value);
  }
  if (const auto details = from.find("details"); details != from.end() && details->is_object()) {
    item.details = std::move(*details);
  }
  const auto items = from.find("items");
  if (items == from.end() || items->is_null()) return absl::OkStatus();
  if (!items->is_array()) {
    return absl::InvalidArgumentError(absl::StrCat("\"items\" of ", item.name, " is not a list"));
  }
  item.items.reserve(items->size());
  for (Json& child : *items) {
    RETURN_IF_ERROR(FillItem(child, depth + 1, item.items.emplace_back()));
    child = nullptr;  // no longer needed
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteResultsYaml(const ResultItem& root, ByteSink& sink) {
  SinkBuffer buffer(sink);
  std::ostream stream(&buffer);
  YAML::Emitter out(stream);
  EmitItem(out, root);
  stream << "\n";
  RETURN_IF_ERROR(buffer.Finish());
  if (!out.good()) return absl::InternalError(absl::StrCat("YAML: ", out.GetLastError()));
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ResultsYamlSize(const ResultItem& root) {
  CountingSink sink;
  RETURN_IF_ERROR(WriteResultsYaml(root, sink));
  return sink.size;
}

absl::StatusOr<ResultItem> ParseResultsYaml(std::string_view text, const YamlLimits& limits) {
  ASSIGN_OR_RETURN(Json tree, ParseYamlTree(text, limits));
  ResultItem root;
  RETURN_IF_ERROR(FillItem(tree, 0, root));
  return root;
}

}  // namespace muster
