#include "services/agent/agent_state.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/agent/jobs/process_mark.h"
#include "services/client/attempt_state.h"
#include "services/common/base/errno_error.h"
#include "services/common/base/file_lock.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/log.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/utf8.h"
#include "services/common/errors/client.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// An error contains at most 16 KiB of the plugin's output, of which JSON may escape each byte.
constexpr size_t kMaxStateFile = 256 * 1024;

absl::Status MakeFolder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return ErrnoError(error.value(), "make folder", folder);
  fs::permissions(folder, fs::perms::owner_all, error);
  return error ? ErrnoError(error.value(), "chmod", folder) : absl::OkStatus();
}

std::string ProcessPath(const std::string& folder) { return folder + "/process"; }
std::string ResultsPath(const std::string& folder) { return folder + "/results"; }

std::string LockPath(const std::string& folder) { return folder + "/lock"; }

// Removes the folder of a state whose lock the caller holds. The lock is removed last: an agent
// that starts meanwhile would take another lock, and lose its files.
void RemoveLocked(const std::string& folder) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path() != LockPath(folder)) fs::remove_all(entry.path(), ignored);
  }
  fs::remove(LockPath(folder), ignored);
  fs::remove(folder, ignored);  // fails if an agent has taken a new lock
}

int64_t BytesIn(const std::string& folder) {
  int64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_symlink(ignored) || !entry->is_regular_file(ignored)) continue;
    const auto size = entry->file_size(ignored);
    if (!ignored) bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

void EndOrphan(const std::string& folder) {
  const auto text = ReadFileBounded(ProcessPath(folder), kMaxStateFile);
  if (!text.ok()) return;
  const auto mark = ProcessMark::FromText(*text);
  const int ended = mark.ok() ? EndGroup(*mark, "RESULTS_DIR=" + ResultsPath(folder)) : 0;
  if (ended > 0) {
    Log(LogLevel::kWarning, "a plugin of an earlier process of this agent was killed",
        {{"folder", folder}, {"processes_ended", ended}});
  }
  std::error_code ignored;
  fs::remove(ProcessPath(folder), ignored);
}

}  // namespace

void EndOrphanedPlugins(const std::string& state_dir) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(state_dir, error)) {
    const std::string folder = entry.path().string();
    if (!fs::exists(ProcessPath(folder), error)) continue;
    const auto lock = TryLockFile(LockPath(folder));
    if (lock.ok() && lock->valid()) EndOrphan(folder);
  }
}

bool RemoveState(const std::string& state_dir, std::string_view run, std::string_view plugin,
                 std::string_view node) {
  const std::string name = client::StateName(run, plugin, node);
  const std::string folder = absl::StrCat(state_dir, "/", name);
  std::error_code error;
  if (fs::exists(folder, error)) {
    const auto lock = LockFileSoon(LockPath(folder));
    if (!lock.ok() || !lock->valid()) return false;
    RemoveLocked(folder);
  }
  return client::RemoveAttemptState(state_dir, name);
}

bool IsCommitted(const std::string& state_dir, std::string_view run, std::string_view plugin,
                 std::string_view node) {
  AgentState state(state_dir + "/" + client::StateName(run, plugin, node), UniqueFd());
  return state.Load().ok() && state.phase() == AgentPhase::kCommitted;
}

std::optional<int64_t> UndeliveredBytes(const std::string& state_dir, std::string_view run,
                                        std::string_view plugin, std::string_view node) {
  AgentState state(state_dir + "/" + client::StateName(run, plugin, node), UniqueFd());
  if (!state.MustRemain()) return std::nullopt;
  return BytesIn(state.folder_);
}

std::vector<UndeliveredResult> ListUndeliveredResults(const std::string& state_dir,
                                                      std::string_view node) {
  std::vector<UndeliveredResult> results;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(state_dir, error)) {
    if (!entry.is_directory(error)) continue;
    AgentState state(entry.path().string(), UniqueFd());
    if (!state.MustRemain()) continue;
    const ResultName& name = state.name_;
    // Otherwise another folder has the name, or it is not known.
    if (client::StateName(name.run, name.plugin, node) != entry.path().filename()) continue;
    results.push_back({name, BytesIn(state.folder_)});
  }
  return results;
}

AgentState::AgentState(std::string folder, UniqueFd lock)
    : folder_(std::move(folder)), lock_(std::move(lock)) {}

absl::StatusOr<std::unique_ptr<AgentState>> AgentState::Open(const std::string& state_dir,
                                                             std::string_view run,
                                                             std::string_view plugin,
                                                             std::string_view node,
                                                             KeptResults* kept) {
  const std::string folder = state_dir + "/" + client::StateName(run, plugin, node);
  RETURN_IF_ERROR(MakeFolder(folder));
  ASSIGN_OR_RETURN(UniqueFd lock, LockFileSoon(LockPath(folder)));
  if (!lock.valid()) return errors::DeliveryAlreadyRunning(plugin, node, LockPath(folder));
  EndOrphan(folder);
  std::unique_ptr<AgentState> state(new AgentState(folder, std::move(lock)));
  RETURN_IF_ERROR(state->Load());
  state->kept_ = kept;
  state->name_ = {std::string(run), std::string(plugin)};
  Prune(state_dir);
  return state;
}

// Old state and the oldest states are removed, so that the folder does not grow without limit. With
// a wrong clock all state may seem old, and a relay that lies may cause any number of states: a
// result that is not delivered remains.
void AgentState::Prune(const std::string& state_dir) {
  client::StoredStates states;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(state_dir, error)) {
    if (entry.is_directory(error)) client::AddState(entry, &states);
  }
  if (client::ExcessStates(states).empty()) return;
  // Without the lock, which a starting agent may need.
  std::erase_if(states, [&](const auto& state) {
    return AgentState(state_dir + "/" + state.first, UniqueFd()).MustRemain();
  });
  for (const std::string& name : client::ExcessStates(states)) {
    const std::string folder = state_dir + "/" + name;
    auto lock = TryLockFile(LockPath(folder));
    if (!lock.ok() || !lock->valid()) continue;
    AgentState state(folder, *std::move(lock));  // has the lock until the folder is removed
    if (state.MustRemain()) continue;
    RemoveLocked(folder);
    client::RemoveAttemptState(state_dir, name);
  }
}

// Loads the state again. One without a name was not written by this program.
bool AgentState::MustRemain() {
  return !Load().ok() || (phase_ == AgentPhase::kProduced && !name_.plugin.empty());
}

absl::Status AgentState::Load() {
  const auto text = ReadFileBounded(folder_ + "/state.json", kMaxStateFile);
  if (!text.ok()) {
    if (text.status().code() == absl::StatusCode::kNotFound) return absl::OkStatus();
    return text.status();
  }
  // Only this program writes the file, atomically: unreadable content counts as no state.
  const Json json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::OkStatus();
  const auto field = [&](const char* name) {
    return json.contains(name) && json[name].is_string() ? json[name].get<std::string>() : "";
  };
  name_ = {field("run"), field("plugin")};
  std::error_code error;
  if (field("phase") == "committed") phase_ = AgentPhase::kCommitted;
  if (field("phase") == "produced" && (fs::exists(field("path"), error) || error)) {
    phase_ = AgentPhase::kProduced;
    result_ = {field("path"), field("media_type")};
  }
  if (field("phase") == "failed" || field("phase") == "settled") {
    phase_ = field("phase") == "failed" ? AgentPhase::kFailed : AgentPhase::kSettled;
    failure_ = {client::Code::kFailed, field("reason"), field("message"), field("next_step")};
  }
  return absl::OkStatus();
}

absl::Status AgentState::MakeFolders() {
  RemoveFolders();
  RETURN_IF_ERROR(MakeFolder(results_dir()));
  return MakeFolder(scratch_dir());
}

std::string AgentState::results_dir() const { return ResultsPath(folder_); }

absl::Status AgentState::NoteProcess(pid_t pid) {
  ASSIGN_OR_RETURN(const auto mark, ProcessMark::Of(pid));
  return WriteFileAtomically(ProcessPath(folder_), mark.ToText());
}

absl::Status AgentState::SetProduced(ModuleResult result) {
  // Otherwise an incomplete file would be delivered after a loss of power.
  if (result.path.starts_with(results_dir() + "/")) {
    ASSIGN_OR_RETURN(const auto file, PosixFileOps().Open(result.path, OpenMode::kRead));
    RETURN_IF_ERROR(file->SyncData());
  }
  phase_ = AgentPhase::kProduced;
  result_ = std::move(result);
  return Save();
}

absl::Status AgentState::SetFailed(client::Status why) {
  return SaveError(AgentPhase::kFailed, std::move(why));
}

absl::Status AgentState::SetSettled(client::Status why) {
  result_ = {};
  auto status = SaveError(AgentPhase::kSettled, std::move(why));
  if (status.ok()) RemoveFolders();
  return status;
}

absl::Status AgentState::SaveError(AgentPhase phase, client::Status why) {
  phase_ = phase;
  // As it is read again: each attempt delivers the same text.
  why.message = CleanUtf8(why.message);
  failure_ = std::move(why);
  return Save();
}

absl::Status AgentState::SetCommitted(const client::Receipt& receipt) {
  const bool kept = kept_ != nullptr && PrepareToKeep(receipt);
  phase_ = AgentPhase::kCommitted;
  result_ = {};
  RETURN_IF_ERROR(Save());
  if (const absl::Status moved = kept ? kept_->Move(name_) : absl::OkStatus(); !moved.ok()) {
    Log(LogLevel::kWarning, "a committed result is not kept",
        {{"run", name_.run}, {"plugin", name_.plugin}, {"error", moved}});
  }
  RemoveFolders();
  return absl::OkStatus();
}

// Files of others stay as they are: their owner may still use or change them.
bool AgentState::PrepareToKeep(const client::Receipt& receipt) {
  std::error_code error;
  const fs::path path = result_.path;
  const fs::path folder = fs::canonical(results_dir(), error);
  if (error || !path.string().starts_with(folder.string() + "/") || receipt.sha256.empty() ||
      !fs::is_regular_file(fs::symlink_status(path, error)) ||
      static_cast<int64_t>(fs::file_size(path, error)) != receipt.size) {
    return false;
  }
  const absl::Status prepared = kept_->Prepare(name_, path.string(),
                                               {.media_type = result_.media_type,
                                                .file_name = CleanUtf8(path.filename().string()),
                                                .size = receipt.size,
                                                .sha256 = receipt.sha256});
  if (!prepared.ok()) {
    Log(LogLevel::kInfo, "a committed result is not kept",
        {{"run", name_.run}, {"plugin", name_.plugin}, {"error", prepared}});
  }
  return prepared.ok();
}

absl::Status AgentState::Clear() {
  phase_ = AgentPhase::kNothing;
  result_ = {};
  failure_ = {};
  auto status = Save();
  if (status.ok()) RemoveFolders();
  return status;
}

absl::Status AgentState::Save() {
  constexpr const char* kNames[] = {"nothing", "produced", "committed", "failed", "settled"};
  Json json = {{"run", name_.run},
               {"plugin", name_.plugin},
               {"phase", kNames[static_cast<int>(phase_)]},
               {"path", result_.path},
               {"media_type", result_.media_type}};
  if (phase_ == AgentPhase::kFailed || phase_ == AgentPhase::kSettled) {
    json["reason"] = failure_.reason;
    json["message"] = failure_.message;
    json["next_step"] = failure_.next_step;
  }
  return WriteFileAtomically(folder_ + "/state.json",
                             json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

void AgentState::RemoveFolders() {
  // Files that cannot be removed now are removed before the next use.
  std::error_code ignored;
  fs::remove(ProcessPath(folder_), ignored);
  fs::remove_all(results_dir(), ignored);
  fs::remove_all(scratch_dir(), ignored);
}

}  // namespace muster
