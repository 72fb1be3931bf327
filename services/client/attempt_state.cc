#include "services/client/attempt_state.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "services/client/content_digest.h"
#include "services/common/base/errno_error.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/client.h"

namespace muster::client {
namespace {

constexpr size_t kMaxStateFile = 4096;
constexpr size_t kStateNameSize = 32;

// No run is older: the longest timeout is 30 days, and late results arrive within an hour.
constexpr std::chrono::hours kOldest{24 * 40};

// Removes files of old runs, so that the folder does not grow without limit.
void Prune(const std::string& folder) {
  namespace fs = std::filesystem;
  const auto oldest = fs::file_time_type::clock::now() - kOldest;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const std::string stem = name.substr(0, name.find('.'));
    const bool ours = stem.size() == kStateNameSize &&
                      stem.find_first_not_of("0123456789abcdef") == std::string::npos;
    std::error_code ignored;
    if (ours && entry.last_write_time(ignored) < oldest && !ignored) {
      fs::remove_all(entry.path(), ignored);
    }
  }
}

absl::Status MakeFolder(const std::string& folder) {
  std::error_code error;
  if (std::filesystem::is_directory(folder, error)) return absl::OkStatus();
  if (!std::filesystem::create_directories(folder, error) && error) {
    return ErrnoError(error.value(), "make folder", folder);
  }
  std::filesystem::permissions(folder, std::filesystem::perms::owner_all, error);
  return error ? ErrnoError(error.value(), "chmod", folder) : absl::OkStatus();
}

}  // namespace

std::string StateName(std::string_view run, std::string_view plugin, std::string_view node) {
  ContentDigest digest;
  const std::string key = absl::StrCat(ToAbsl(run), "\n", ToAbsl(plugin), "\n", ToAbsl(node));
  digest.Add(0, key);
  return absl::BytesToHexString(digest.Sha256().substr(0, kStateNameSize / 2));
}

AttemptState::AttemptState(std::string path, UniqueFd lock)
    : path_(std::move(path)), lock_(std::move(lock)) {}

absl::StatusOr<std::unique_ptr<AttemptState>> AttemptState::Open(const std::string& folder,
                                                                 std::string_view run,
                                                                 std::string_view plugin,
                                                                 std::string_view node) {
  if (folder.empty()) return std::unique_ptr<AttemptState>(new AttemptState("", UniqueFd()));
  RETURN_IF_ERROR(MakeFolder(folder));
  Prune(folder);
  const std::string path = absl::StrCat(folder, "/", StateName(run, plugin, node), ".json");
  const std::string lock_path = path + ".lock";
  UniqueFd lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.valid()) return ErrnoError(errno, "open", lock_path);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return errors::DeliveryAlreadyRunning(plugin, node, lock_path);
    return ErrnoError(errno, "lock", lock_path);
  }
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
    state->attempt_ = json["attempt"].get<int64_t>();
    state->fingerprint_ = json["fingerprint"].get<std::string>();
  }
  return state;
}

absl::StatusOr<int64_t> AttemptState::Begin(std::string_view fingerprint) {
  if (attempt_ > 0 && fingerprint == fingerprint_) return attempt_;
  fingerprint_ = fingerprint;
  return Next();
}

absl::StatusOr<int64_t> AttemptState::Next() {
  ++attempt_;
  RETURN_IF_ERROR(Save());
  return attempt_;
}

absl::Status AttemptState::Save() {
  if (path_.empty()) return absl::OkStatus();
  const nlohmann::json json = {{"attempt", attempt_}, {"fingerprint", fingerprint_}};
  return WriteFileAtomically(path_, json.dump() + "\n");
}

}  // namespace muster::client
