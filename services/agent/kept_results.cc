#include "services/agent/kept_results.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/client/attempt_state.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMaxDescription = 64 * 1024;
constexpr char kDescription[] = "/kept.json";
constexpr char kFile[] = "/result";

std::string TextOf(const Json& json, const char* name) {
  return json.contains(name) && json[name].is_string() ? json[name].get<std::string>() : "";
}

int64_t NumberOf(const Json& json, const char* name) {
  return json.contains(name) && json[name].is_number_integer() ? json[name].get<int64_t>() : -1;
}

}  // namespace

KeptResults::KeptResults(KeptResultsOptions options)
    : options_(std::move(options)), ops_(*options_.ops) {
  const auto folders = ops_.List(options_.folder);
  if (!folders.ok()) return;  // nothing was kept
  {
    MutexLock lock(mutex_);
    for (const FolderEntry& entry : *folders) {
      Load(absl::StrCat(options_.folder, "/", entry.name));
    }
  }
  Trim();
}

std::string KeptResults::FolderOf(const ResultName& name) const {
  return absl::StrCat(options_.folder, "/",
                      client::StateName(name.run, name.plugin, options_.node));
}

// Adds the result in a folder, or removes the folder if it has none.
void KeptResults::Load(const std::string& folder) {
  const auto text = ReadSmallFile(ops_, absl::StrCat(folder, kDescription), kMaxDescription);
  if (absl::IsResourceExhausted(text.status()) || absl::IsUnavailable(text.status())) {
    return;  // the next start may read it
  }
  const Json json = text.ok() ? Json::parse(*text, nullptr, /*allow_exceptions=*/false) : Json();
  Entry entry;
  ResultName name;
  if (json.is_object()) {
    name = {TextOf(json, "run"), TextOf(json, "plugin")};
    entry.result = {absl::StrCat(folder, kFile), TextOf(json, "media_type"),
                    TextOf(json, "file_name"), NumberOf(json, "size"), TextOf(json, "sha256")};
    entry.source = TextOf(json, "source");
    entry.kept_at = NumberOf(json, "kept_at");
  }
  bool complete = json.is_object() && entry.result.size >= 0 && FolderOf(name) == folder;
  if (complete && ops_.Stat(entry.result.path).ok()) {
    entry.source.clear();
  } else if (complete) {
    complete = options_.is_committed && options_.is_committed(name) && MoveFile(name, &entry).ok();
  }
  if (!complete) {
    RemoveTree(ops_, folder).IgnoreError();
    return;
  }
  bytes_ += entry.result.size;
  entries_.insert_or_assign(std::move(name), std::move(entry));
}

absl::Status KeptResults::Prepare(const ResultName& name, const std::string& source,
                                  const KeptResult& description) {
  Trim();
  MutexLock lock(mutex_);
  if (const auto earlier = entries_.find(name); earlier != entries_.end()) Erase(earlier);
  if (description.size > Limit()) {
    return absl::ResourceExhaustedError(
        absl::StrCat(description.size, " bytes exceed the limit of kept results, ", Limit()));
  }
  MakeSpace(description.size);
  const std::string folder = FolderOf(name);
  Entry entry;
  entry.result = description;
  entry.result.path = absl::StrCat(folder, kFile);
  entry.source = source;
  entry.kept_at = absl::ToUnixMicros(options_.clock->Now());
  const Json json = {{"run", name.run},
                     {"plugin", name.plugin},
                     {"media_type", description.media_type},
                     {"file_name", description.file_name},
                     {"size", description.size},
                     {"sha256", description.sha256},
                     {"source", source},
                     {"kept_at", entry.kept_at}};
  RETURN_IF_ERROR(MakeFolders(ops_, folder));
  const absl::Status written =
      WriteFileDurably(ops_, absl::StrCat(folder, kDescription),
                       json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  if (!written.ok()) {
    RemoveTree(ops_, folder).IgnoreError();
    return written;
  }
  bytes_ += description.size;
  entries_.insert_or_assign(name, std::move(entry));
  return absl::OkStatus();
}

absl::Status KeptResults::Move(const ResultName& name) {
  MutexLock lock(mutex_);
  const auto entry = entries_.find(name);
  if (entry == entries_.end()) return absl::NotFoundError("the result was removed meanwhile");
  const absl::Status moved = MoveFile(name, &entry->second);
  if (!moved.ok()) Erase(entry);
  return moved;
}

absl::Status KeptResults::MoveFile(const ResultName& name, Entry* entry) {
  RETURN_IF_ERROR(ops_.Rename(entry->source, entry->result.path));
  entry->source.clear();
  return ops_.SyncFolder(FolderOf(name));
}

std::optional<KeptResult> KeptResults::Find(const ResultName& name) const {
  MutexLock lock(mutex_);
  const auto entry = entries_.find(name);
  if (entry == entries_.end() || !entry->second.source.empty()) return std::nullopt;
  return entry->second.result;
}

void KeptResults::Remove(const ResultName& name) {
  MutexLock lock(mutex_);
  if (const auto entry = entries_.find(name); entry != entries_.end()) Erase(entry);
}

// A folder that cannot be removed now is removed at a later start, when its age has passed.
void KeptResults::Erase(Entries::iterator entry) {
  if (const absl::Status removed = RemoveTree(ops_, FolderOf(entry->first)); !removed.ok()) {
    LogLimited(LogLevel::kWarning, "a kept result cannot be removed", "",
               {{"run", entry->first.run}, {"plugin", entry->first.plugin}, {"error", removed}});
  }
  bytes_ -= entry->second.result.size;
  entries_.erase(entry);
}

void KeptResults::HandleEnd(const std::string& run) {
  const absl::Duration now = options_.clock->MonotonicNow();
  MutexLock lock(mutex_);
  for (auto& [name, entry] : entries_) {
    if (name.run == run) entry.ended_at = std::min(entry.ended_at, now);
  }
}

// With a clock that was set back, a result is not kept for longer.
bool KeptResults::IsDue(const Entry& entry) const {
  const absl::Time kept_at = absl::FromUnixMicros(entry.kept_at);
  const absl::Time now = options_.clock->Now();
  if (kept_at > now + options_.max_age || now - kept_at >= options_.max_age) return true;
  return options_.clock->MonotonicNow() - entry.ended_at >= kKeptAfterEnd;
}

int64_t KeptResults::Limit() const {
  auto space = ops_.Space(options_.folder);
  // Nothing was kept yet.
  if (absl::IsNotFound(space.status())) space = ops_.Space(ParentFolder(options_.folder));
  // A failure to look is no reason to remove what is kept.
  if (!space.ok()) return options_.max_bytes;
  return std::min(options_.max_bytes, space->available / kFreeSpaceParts);
}

void KeptResults::MakeSpace(int64_t more) {
  while (!entries_.empty()) {
    // Each removal frees space of the disk as well.
    if (bytes_ + more <= Limit() && entries_.size() < options_.max_results + (more > 0 ? 0 : 1)) {
      return;
    }
    Erase(std::ranges::min_element(entries_, {},
                                   [](const auto& entry) { return entry.second.kept_at; }));
  }
}

void KeptResults::Trim() {
  MutexLock lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto current = entry++;
    if (IsDue(current->second)) Erase(current);
  }
  MakeSpace(0);
}

bool KeptResults::empty() const {
  MutexLock lock(mutex_);
  return entries_.empty();
}

int64_t KeptResults::bytes() const {
  MutexLock lock(mutex_);
  return bytes_;
}

}  // namespace muster
