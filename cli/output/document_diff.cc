#include "cli/output/document_diff.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/output/deployment_view.h"
#include "cli/output/format.h"
#include "nlohmann/json.hpp"
#include "services/common/errors/templates.h"
#include "services/common/templates/exact_json.h"

namespace muster::cli {
namespace {

using Patch = nlohmann::json;

Json ValueOrNull(const std::string& text) {
  return text.empty() ? Json(nullptr) : ParseExactJson<Json>(text).value;
}

// Returns the value of a file by its path.
std::map<std::string, std::string> ValuesOf(const TemplateFileList& files) {
  std::map<std::string, std::string> values;
  for (const v1::DeploymentFile& file : files) {
    Json value = ToJson(file);
    value.erase("path");
    values[file.path()] = value.dump();
  }
  return values;
}

}  // namespace

absl::StatusOr<std::vector<DocumentChange>> CompareDocuments(std::string_view before,
                                                             std::string_view after) {
  const auto first = ParseExactJson(before);
  const auto second = ParseExactJson(after);
  if (first.fault != JsonFault::kNone || second.fault != JsonFault::kNone) {
    return errors::InvalidDocument("it is not JSON");
  }
  std::vector<DocumentChange> changes;
  for (const Patch& step : Patch::diff(first.value, second.value)) {
    DocumentChange change = {.path = step.at("path").get<std::string>(), .before = "", .after = ""};
    const std::string kind = step.at("op").get<std::string>();
    if (kind != "add") {
      change.before = ExactJsonText(first.value.at(Patch::json_pointer(change.path)));
    }
    if (kind != "remove") change.after = ExactJsonText(step.at("value"));
    changes.push_back(std::move(change));
  }
  return changes;
}

std::vector<DocumentChange> CompareFiles(const TemplateFileList& before,
                                         const TemplateFileList& after) {
  std::map<std::string, DocumentChange> changes;
  for (auto& [path, value] : ValuesOf(before)) changes[path].before = value;
  for (auto& [path, value] : ValuesOf(after)) changes[path].after = value;
  std::vector<DocumentChange> different;
  for (auto& [path, change] : changes) {
    if (change.before == change.after) continue;
    change.path = (Patch::json_pointer("/files") / path).to_string();
    different.push_back(std::move(change));
  }
  return different;
}

std::string DiffText(const std::vector<DocumentChange>& changes) {
  std::string text;
  for (const DocumentChange& change : changes) {
    const std::string place = Printable(change.path);
    if (!change.before.empty()) absl::StrAppend(&text, "- ", place, ": ", change.before, "\n");
    if (!change.after.empty()) absl::StrAppend(&text, "+ ", place, ": ", change.after, "\n");
  }
  return text;
}

Json ToJson(const std::vector<DocumentChange>& changes) {
  Json json = Json::array();
  for (const DocumentChange& change : changes) {
    json.push_back({{"path", change.path},
                    {"before", ValueOrNull(change.before)},
                    {"after", ValueOrNull(change.after)}});
  }
  return json;
}

}  // namespace muster::cli
