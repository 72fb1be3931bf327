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
  for (const FolderEntry& entry : *folders) {
    Load(absl::StrCat(options_.folder, "/", entry.name));
  }
  Trim();
}

std::string KeptResults::FolderOf(const ResultName& name) const {
  return absl::StrCat(options_.folder, "/",
                      client::StateName(name.run, name.plugin, options_.node));
}

// Adds the result in a folder, or removes the folder if it has none. A failure of the disk leaves
// it for the next start. For the constructor: no other call owns the folder.
void KeptResults::Load(const std::string& folder) {
  const auto text = ReadSmallFile(ops_, absl::StrCat(folder, kDescription), kMaxDescription);
  const auto may_be_read_later = [](const absl::Status& status) {
    return !status.ok() && !absl::IsNotFound(status) && !absl::IsOutOfRange(status);
  };
  if (may_be_read_later(text.status())) return;
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
  if (complete) {
    absl::Status moved = ops_.Stat(entry.result.path).status();
    if (absl::IsNotFound(moved) && options_.is_committed && options_.is_committed(name)) {
      moved = MoveFile(name, entry);
    }
    if (may_be_read_later(moved)) return;
    complete = moved.ok();
  }
  if (!complete) {
    RemoveTree(ops_, folder).IgnoreError();
    return;
  }
  entry.source.clear();
  MutexLock lock(mutex_);
  bytes_ += entry.result.size;
  entries_.insert_or_assign(std::move(name), std::move(entry));
}

absl::Status KeptResults::Prepare(const ResultName& name, const std::string& source,
                                  const KeptResult& description) {
  Trim();
  Entry entry;
  entry.result = description;
  entry.result.path = absl::StrCat(FolderOf(name), kFile);
  entry.source = source;
  entry.kept_at = absl::ToUnixMicros(options_.clock->Now());
  RETURN_IF_ERROR(Admit(name, entry));
  const absl::Status written = WriteDescription(name, entry);
  if (!written.ok()) RemoveTree(ops_, FolderOf(name)).IgnoreError();
  MutexLock lock(mutex_);
  if (!written.ok()) Dequeue(entries_.find(name));
  Release(name);
  return written;
}

// Adds the entry, whose folder the caller owns then. The earlier result of the name, and the oldest
// ones, make space for it.
absl::Status KeptResults::Admit(const ResultName& name, const Entry& entry) {
  const int64_t size = entry.result.size;
  for (;;) {
    // Each removal frees space of the disk as well.
    const int64_t limit = Limit();
    if (size > limit) {
      return absl::ResourceExhaustedError(
          absl::StrCat(size, " bytes exceed the limit of kept results, ", limit));
    }
    MutexLock lock(mutex_);
    AwaitOwner(name);
    auto victim = entries_.find(name);
    if (victim == entries_.end()) {
      if (size <= limit - bytes_ && entries_.size() < options_.max_results) {
        bytes_ += size;
        entries_.emplace(name, entry);
        owned_.insert(name);
        return absl::OkStatus();
      }
      victim = FindOldest();
    }
    if (victim == entries_.end()) {
      return absl::ResourceExhaustedError("other results that are not kept yet take the space");
    }
    const ResultName taken = Dequeue(victim);
    lock.Unlock();
    RemoveOwned(taken);
  }
}

absl::Status KeptResults::WriteDescription(const ResultName& name, const Entry& entry) const {
  const std::string folder = FolderOf(name);
  const Json json = {{"run", name.run},
                     {"plugin", name.plugin},
                     {"media_type", entry.result.media_type},
                     {"file_name", entry.result.file_name},
                     {"size", entry.result.size},
                     {"sha256", entry.result.sha256},
                     {"source", entry.source},
                     {"kept_at", entry.kept_at}};
  RETURN_IF_ERROR(MakeFolders(ops_, folder));
  return WriteFileDurably(ops_, absl::StrCat(folder, kDescription),
                          json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

absl::Status KeptResults::Move(const ResultName& name) {
  Entry entry;
  {
    MutexLock lock(mutex_);
    AwaitOwner(name);
    const auto found = entries_.find(name);
    if (found == entries_.end()) return absl::NotFoundError("the result was removed meanwhile");
    entry = found->second;
    owned_.insert(name);
  }
  const absl::Status moved = MoveFile(name, entry);
  if (!moved.ok()) RemoveTree(ops_, FolderOf(name)).IgnoreError();
  MutexLock lock(mutex_);
  const auto found = entries_.find(name);
  if (moved.ok()) {
    found->second.source.clear();
  } else {
    Dequeue(found);
  }
  Release(name);
  return moved;
}

absl::Status KeptResults::MoveFile(const ResultName& name, const Entry& entry) const {
  RETURN_IF_ERROR(ops_.Rename(entry.source, entry.result.path));
  return ops_.SyncFolder(FolderOf(name));
}

std::optional<KeptResult> KeptResults::Find(const ResultName& name) {
  MutexLock lock(mutex_);
  AwaitOwner(name);  // a result that is being moved is not declined
  const auto entry = entries_.find(name);
  if (entry == entries_.end() || !entry->second.source.empty()) return std::nullopt;
  return entry->second.result;
}

void KeptResults::Remove(const ResultName& name) {
  {
    MutexLock lock(mutex_);
    AwaitOwner(name);
    const auto entry = entries_.find(name);
    if (entry == entries_.end()) return;
    Dequeue(entry);
  }
  RemoveOwned(name);
}

void KeptResults::AwaitOwner(const ResultName& name) {
  while (owned_.contains(name)) released_.Wait(mutex_);
}

ResultName KeptResults::Dequeue(Entries::iterator entry) {
  ResultName name = entry->first;
  owned_.insert(name);
  bytes_ -= entry->second.result.size;
  entries_.erase(entry);
  return name;
}

// A folder that cannot be removed now is removed at a later start, when its age has passed.
void KeptResults::RemoveOwned(const ResultName& name) {
  if (const absl::Status removed = RemoveTree(ops_, FolderOf(name)); !removed.ok()) {
    LogLimited(LogLevel::kWarning, "a kept result cannot be removed", "",
               {{"run", name.run}, {"plugin", name.plugin}, {"error", removed}});
  }
  MutexLock lock(mutex_);
  Release(name);
}

void KeptResults::Release(const ResultName& name) {
  owned_.erase(name);
  released_.NotifyAll();
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

KeptResults::Entries::iterator KeptResults::FindDue() {
  return std::ranges::find_if(entries_,
                              [this](const auto& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                                return IsDue(entry.second) && !owned_.contains(entry.first);
                              });
}

KeptResults::Entries::iterator KeptResults::FindOldest() {
  auto oldest = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (owned_.contains(entry->first)) continue;
    if (oldest == entries_.end() || entry->second.kept_at < oldest->second.kept_at) oldest = entry;
  }
  return oldest;
}

// Those that another call owns are removed by a later call.
void KeptResults::Trim() {
  for (;;) {
    const int64_t limit = Limit();
    MutexLock lock(mutex_);
    auto victim = FindDue();
    if (victim == entries_.end()) {
      if (bytes_ <= limit && entries_.size() <= options_.max_results) return;
      victim = FindOldest();
    }
    if (victim == entries_.end()) return;
    const ResultName taken = Dequeue(victim);
    lock.Unlock();
    RemoveOwned(taken);
  }
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
