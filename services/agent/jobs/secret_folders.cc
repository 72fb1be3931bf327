#include "services/agent/jobs/secret_folders.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "services/agent/jobs/deployment_files.h"
#include "services/agent/jobs/file_modes.h"
#include "services/agent/jobs/untrusted_folder.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/log.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/templates.h"
#include "services/common/identity/key_wrap.h"  // kMaxSecret
#include "services/common/templates/parameters.h"

namespace muster {
namespace {

constexpr size_t kNameDigits = 16;
constexpr mode_t kOwnerReads = 0400;
constexpr mode_t kOwnerEnters = 0500;

bool IsInMemory(const std::string& folder) {
  struct statfs info = {};
  return statfs(folder.c_str(), &info) == 0 && info.f_type == TMPFS_MAGIC;
}

absl::Status Unavailable(const absl::Status& why) {
  return errors::SecretUnavailable(ToStd(why.message()));
}

absl::Status Failed(std::string_view what, const std::string& path) {
  return errors::SecretUnavailable(
      absl::StrCat("cannot ", ToAbsl(what), " ", path, ": ", strerror(errno)));
}

struct UserAndGroup {
  uid_t user = 0;
  gid_t group = static_cast<gid_t>(-1);  // unchanged
};

// Reads "1000" or "1000:1000". Nothing for names, which only the image knows.
std::optional<UserAndGroup> NumbersOf(const std::string& user) {
  const std::vector<std::string> parts = absl::StrSplit(user, absl::MaxSplits(':', 1));
  UserAndGroup numbers;
  if (!absl::SimpleAtoi(parts[0], &numbers.user)) return std::nullopt;
  if (parts.size() == 2 && !absl::SimpleAtoi(parts[1], &numbers.group)) return std::nullopt;
  return numbers;
}

absl::Status GiveTo(const std::string& path, const UserAndGroup& owner, mode_t mode) {
  if (lchown(path.c_str(), owner.user, owner.group) != 0) return Failed("give away", path);
  return chmod(path.c_str(), mode) == 0 ? absl::OkStatus() : Failed("set the mode of", path);
}

}  // namespace

std::vector<std::string> DefaultMemoryFolders() {
  std::vector<std::string> folders = {"/dev/shm"};
  if (const char* runtime = std::getenv("XDG_RUNTIME_DIR"); runtime != nullptr) {
    folders.emplace_back(runtime);
  }
  return folders;
}

SecretFolders::SecretFolders(const std::string& agent_folder, const std::string& node,
                             const std::vector<std::string>& memory_folders) {
  const std::string name =
      ToHex(Sha256::Of(absl::StrCat(std::filesystem::absolute(agent_folder).string(), "\n", node)));
  for (const std::string& folder : memory_folders) {
    if (!IsInMemory(folder) || access(folder.c_str(), W_OK | X_OK) != 0) continue;
    base_ = absl::StrCat(folder, "/muster-secrets-", name.substr(0, kNameDigits));
    return;
  }
  why_ = absl::StrCat("none of ", absl::StrJoin(memory_folders, ", "),
                      " is a tmpfs that the agent may write to, and secrets are not written to a "
                      "disk");
}

absl::StatusOr<std::string> SecretFolders::PathOf(const std::string& job) const {
  if (base_.empty()) return errors::SecretUnavailable(why_);
  return absl::StrCat(base_, "/", job);
}

// Any user may create files in /dev/shm.
absl::Status SecretFolders::CheckBase() const {
  if (mkdir(base_.c_str(), S_IRWXU) != 0 && errno != EEXIST) return Failed("create", base_);
  struct stat info = {};
  if (lstat(base_.c_str(), &info) != 0) return Failed("read", base_);
  if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 077) != 0) {
    return errors::SecretUnavailable(
        absl::StrCat(base_, " is not a folder of the agent alone; remove it"));
  }
  return absl::OkStatus();
}

absl::Status SecretFolders::Create(const std::string& job, const std::string& user,
                                   const v1::SecretValues& values) const {
  ASSIGN_OR_RETURN(const std::string folder, PathOf(job));
  {
    MutexLock lock(mutex_);
    RETURN_IF_ERROR(CheckBase());
    RETURN_IF_ERROR(RemoveUntrusted(folder));
    if (absl::Status made = MakeFolderWithMode(folder, S_IRWXU); !made.ok()) {
      return Unavailable(made);
    }
  }
  const std::optional<UserAndGroup> owner = geteuid() == 0 ? NumbersOf(user) : std::nullopt;
  for (const v1::SecretValues::Value& value : values.values()) {
    const std::string path = absl::StrCat(folder, "/", value.name());
    if (absl::Status written = WriteReadOnly(path, value.value(), false); !written.ok()) {
      return Unavailable(written);
    }
    if (owner) RETURN_IF_ERROR(GiveTo(path, *owner, kOwnerReads));
  }
  if (owner) return GiveTo(folder, *owner, kOwnerEnters);
  return chmod(folder.c_str(), kAnyUserEntersReadOnly) == 0 ? absl::OkStatus()
                                                            : Failed("set the mode of", folder);
}

absl::StatusOr<v1::SecretValues> SecretFolders::Read(const std::string& job) const {
  ASSIGN_OR_RETURN(const std::string folder, PathOf(job));
  ASSIGN_OR_RETURN(const auto entries, PosixFileOps().List(folder));
  v1::SecretValues values;
  for (const FolderEntry& entry : entries) {
    if (!IsParameterName(entry.name)) continue;  // of job_vault.h
    ASSIGN_OR_RETURN(auto content,
                     ReadSmallFile(PosixFileOps(), absl::StrCat(folder, "/", entry.name),
                                   static_cast<int64_t>(kMaxSecret)));
    v1::SecretValues::Value& value = *values.add_values();
    value.set_name(entry.name);
    value.set_value(std::move(content));
  }
  return values;
}

absl::Status SecretFolders::Remove(const std::string& job) const {
  if (base_.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(RemoveUntrusted(absl::StrCat(base_, "/", job)));
  RemoveBase();
  return absl::OkStatus();
}

// Fails while it has the folder of another job.
void SecretFolders::RemoveBase() const {
  MutexLock lock(mutex_);
  rmdir(base_.c_str());
}

void SecretFolders::RemoveOthers(absl::FunctionRef<bool(const std::string& job)> in_use) const {
  if (base_.empty() || access(base_.c_str(), F_OK) != 0 || !CheckBase().ok()) return;
  const auto entries = PosixFileOps().List(base_);
  if (!entries.ok()) return;
  for (const FolderEntry& entry : *entries) {
    if (in_use(entry.name)) continue;
    if (const absl::Status removed = Remove(entry.name); !removed.ok()) {
      Log(LogLevel::kError, "the secrets of an ended job cannot be removed; remove them by hand",
          {{"job", entry.name}, {"folder", base_}, {"error", removed}});
    }
  }
  RemoveBase();
}

}  // namespace muster
