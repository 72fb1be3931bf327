#include "services/common/archive/manifest.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "services/common/archive/json_text.h"
#include "services/common/base/strings.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

std::string TimeText(absl::Time t) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", t, absl::UTCTimeZone());
}

Json EntryJson(const ManifestEntry& entry) {
  Json out = {{"path", entry.path}, {"size", entry.content.size}, {"sha256", entry.content.sha256}};
  if (!entry.original_name.empty()) out["original_name"] = entry.original_name;
  if (entry.partial) out["partial"] = true;
  if (entry.damaged) out["damaged"] = true;
  return out;
}

Json ResultJson(const ArchivedResult& result, std::string_view stored) {
  Json out = {{"plugin", result.plugin},
              {"node", result.node},
              {"outcome", OutcomeName(result.outcome)},
              {"generation", result.generation},
              {"committed_at", TimeText(result.committed_at)}};
  const auto set = [&out](const char* key, const std::string& value) {
    if (!value.empty()) out[key] = value;
  };
  set("error", result.error);
  if (result.has_file) {
    set("media_type", result.media_type);
    set("file_name", result.file_name);
    out["size"] = result.size;
    set("sha256", result.sha256);
    out["stored"] = stored;
  }
  set("delivered_by", result.delivered_by);
  if (result.node_unproven) out["node_unproven"] = true;
  set("vouched_by", result.vouched_by);
  for (const ReplacedResult& old : result.history) {
    out["history"].push_back({{"generation", old.generation},
                              {"outcome", OutcomeName(old.outcome)},
                              {"error", old.error},
                              {"committed_at", TimeText(old.committed_at)}});
  }
  return out;
}

}  // namespace

absl::Status ManifestWriter::Begin(std::string_view run, absl::Time created) {
  std::string head = JsonText({{"version", 1}, {"run", run}, {"created", TimeText(created)}});
  head.pop_back();  // the closing brace
  return sink_.Write(absl::StrCat(head, ",\n\"results\":["));
}

absl::Status ManifestWriter::BeginResult(const ArchivedResult& result, std::string_view stored) {
  std::string line = JsonText(ResultJson(result, stored));
  line.pop_back();
  const char* separator = first_result_ ? "\n" : ",\n";
  first_result_ = false;
  first_entry_ = true;
  return sink_.Write(absl::StrCat(separator, line, ",\"entries\":["));
}

absl::Status ManifestWriter::AddEntry(const ManifestEntry& entry) {
  const char* separator = first_entry_ ? "" : ",";
  first_entry_ = false;
  return sink_.Write(absl::StrCat(separator, JsonText(EntryJson(entry))));
}

absl::Status ManifestWriter::EndResult(const std::vector<std::string>& notes) {
  if (notes.empty()) return sink_.Write("]}");
  return sink_.Write(absl::StrCat("],\"notes\":", JsonText(notes), "}"));
}

void ManifestWriter::AddFile(std::string_view path, const ContentInfo& content) {
  files_.push_back({.path = std::string(path), .content = content});
}

absl::Status ManifestWriter::End() {
  std::string text = "],\n\"files\":[";
  const char* separator = "\n";
  for (const ManifestEntry& file : files_) {
    absl::StrAppend(&text, separator, JsonText(EntryJson(file)));
    separator = ",\n";
  }
  return sink_.Write(absl::StrCat(text, "]}\n"));
}

}  // namespace muster
