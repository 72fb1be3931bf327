#include "services/client/attempt_state.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "services/client/content_digest.h"
#include "services/common/base/errno_error.h"
#include "services/common/base/file_lock.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/client.h"
#include "services/common/upload/attempt.h"

namespace muster::client {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxStateFile = 4096;
constexpr size_t kStateNameSize = 32;

// No run is older: the longest timeout is 30 days, and late results arrive within an hour.
constexpr std::chrono::hours kOldest{24 * 40};

std::string LockPath(const std::string& path) { return path + ".lock"; }

// Removes files of old runs and the oldest files, so that the folder does not grow without limit.
// Those in use remain: with a wrong clock they may seem old. Those of an agent's states remain as
// long as its folder.
void Prune(const std::string& folder) {
  StoredStates states;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().has_extension()) AddState(entry, &states);
  }
  for (const std::string& name : ExcessStates(states)) {
    std::error_code ignored;
    if (!fs::is_directory(absl::StrCat(folder, "/", name), ignored)) {
      RemoveAttemptState(folder, name);
    }
  }
}

absl::Status MakeFolder(const std::string& folder) {
  std::error_code error;
  if (fs::is_directory(folder, error)) return absl::OkStatus();
  if (!fs::create_directories(folder, error) && error) {
    return ErrnoError(error.value(), "make folder", folder);
  }
  fs::permissions(folder, fs::perms::owner_all, error);
  return error ? ErrnoError(error.value(), "chmod", folder) : absl::OkStatus();
}

}  // namespace

bool RemoveAttemptState(const std::string& folder, std::string_view name) {
  const std::string path = absl::StrCat(folder, "/", ToAbsl(name), ".json");
  std::error_code error;
  if (!fs::exists(path, error) && !fs::exists(LockPath(path), error)) return true;
  const auto lock = TryLockFile(LockPath(path));
  if (!lock.ok() || !lock->valid()) return false;
  fs::remove(path, error);
  fs::remove(LockPath(path), error);
  return true;
}

std::string StateName(std::string_view run, std::string_view plugin, std::string_view node) {
  ContentDigest digest;
  const std::string key = absl::StrCat(ToAbsl(run), "\n", ToAbsl(plugin), "\n", ToAbsl(node));
  digest.Add(0, key);
  return absl::BytesToHexString(digest.Sha256().substr(0, kStateNameSize / 2));
}

void AddState(const fs::directory_entry& entry, StoredStates* states) {
  std::string name = entry.path().filename().string();
  name.resize(std::min(name.size(), name.find('.')));
  if (name.size() != kStateNameSize ||
      name.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return;
  }
  std::error_code error;
  const auto written = entry.last_write_time(error);
  if (error) return;
  const auto [state, added] = states->try_emplace(std::move(name), written);
  state->second = std::max(state->second, written);
}

std::vector<std::string> ExcessStates(const StoredStates& states) {
  using State = StoredStates::value_type;
  std::vector<const State*> newest_first;
  for (const State& state : states) newest_first.push_back(&state);
  std::ranges::sort(newest_first, std::greater(), &State::second);
  const auto oldest = fs::file_time_type::clock::now() - kOldest;
  std::vector<std::string> excess;
  for (size_t i = 0; i < newest_first.size(); ++i) {
    const auto& [name, written] = *newest_first[i];
    if (i >= kMaxStates || written < oldest) excess.push_back(name);
  }
  return excess;
}

AttemptState::AttemptState(std::string path, UniqueFd lock)
    : path_(std::move(path)), lock_(std::move(lock)) {}

absl::StatusOr<std::unique_ptr<AttemptState>> AttemptState::Open(const std::string& folder,
                                                                 std::string_view run,
                                                                 std::string_view plugin,
                                                                 std::string_view node) {
  if (folder.empty()) return std::unique_ptr<AttemptState>(new AttemptState("", UniqueFd()));
  RETURN_IF_ERROR(MakeFolder(folder));
  const std::string path = absl::StrCat(folder, "/", StateName(run, plugin, node), ".json");
  ASSIGN_OR_RETURN(UniqueFd lock, LockFileSoon(LockPath(path)));
  if (!lock.valid()) return errors::DeliveryAlreadyRunning(plugin, node, LockPath(path));
  Prune(folder);
  std::unique_ptr<AttemptState> state(new AttemptState(path, std::move(lock)));
  const auto text = ReadFileBounded(path, kMaxStateFile);
  if (!text.ok()) {
    if (text.status().code() == absl::StatusCode::kNotFound) return state;
    return text.status();
  }
  const auto json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  // This program writes the file atomically; other content is foreign. Starting again loses
  // nothing.
  if (json.is_object() && json.contains("attempt") && json["attempt"].is_number_integer() &&
      json.contains("fingerprint") && json["fingerprint"].is_string()) {
    const auto attempt = json["attempt"].get<int64_t>();
    // No service accepts the number of a clock that was ahead.
    if (CheckAttempt(attempt, absl::Now()).ok()) state->attempt_ = attempt;
    state->fingerprint_ = json["fingerprint"].get<std::string>();
  }
  return state;
}

absl::StatusOr<int64_t> AttemptState::Begin(std::string_view fingerprint) {
  if (attempt_ > 0 && fingerprint == fingerprint_) return attempt_;
  fingerprint_ = fingerprint;
  return Next();
}

absl::StatusOr<int64_t> AttemptState::Next(int64_t least) {
  attempt_ = std::max(attempt_ + 1, least);
  RETURN_IF_ERROR(Save());
  return attempt_;
}

absl::Status AttemptState::Save() {
  if (path_.empty()) return absl::OkStatus();
  const nlohmann::json json = {{"attempt", attempt_}, {"fingerprint", fingerprint_}};
  return WriteFileAtomically(path_, json.dump() + "\n");
}

}  // namespace muster::client
