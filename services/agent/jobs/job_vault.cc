#include "services/agent/jobs/job_vault.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "services/agent/vault/peer_container.h"
#include "services/common/base/log.h"
#include "services/common/base/random_id.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/base/write_all.h"
#include "services/common/errors/templates.h"

namespace muster {
namespace {

constexpr size_t kTokenBytes = 16;
constexpr int64_t kMaxToken = 100;
constexpr int64_t kMaxReads = int64_t{16} << 10;
constexpr mode_t kOwnerReads = 0400;

absl::Status Failed(std::string_view what) {
  return errors::SecretUnavailable(
      absl::StrCat("cannot ", std::string(what), ": ", strerror(errno)));
}

// The folder of a job's secrets, which only this agent and the container enter. Without root, the
// agent is its owner, and may not write to it.
class Folder {
 public:
  static absl::StatusOr<Folder> Open(const std::string& path) {
    Folder folder;
    folder.fd_ = UniqueFd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (!folder.fd_.valid() || fstat(folder.fd_.get(), &folder.info_) != 0) {
      return Failed("open the folder of the secrets");
    }
    return folder;
  }

  // Creates files in the folder by `create`, and restores its mode.
  absl::Status Change(const std::function<absl::Status()>& create) const {
    const mode_t mode = info_.st_mode & 07777;
    if (fchmod(fd_.get(), mode | S_IWUSR) != 0) return Failed("write to the folder of the secrets");
    const absl::Status created = create();
    if (fchmod(fd_.get(), mode) != 0) return Failed("set the mode of the folder of the secrets");
    return created;
  }

  absl::StatusOr<UniqueFd> CreateFile(const char* name, mode_t mode) const {
    UniqueFd file(openat(fd_.get(), name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (!file.valid()) return Failed("create a file beside the secrets");
    return file;
  }

  absl::StatusOr<UniqueFd> Open(const char* name, int flags) const {
    UniqueFd file(openat(fd_.get(), name, flags | O_NOFOLLOW | O_CLOEXEC));
    if (!file.valid()) return Failed("open a file beside the secrets");
    return file;
  }

  // Replaces the socket, for the user of the folder; with the agent's own folder, for every user.
  absl::StatusOr<UniqueFd> Listen() const {
    UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd.valid()) return Failed("make a socket");
    if (unlinkat(fd_.get(), kVaultSocketFile, 0) != 0 && errno != ENOENT) {
      return Failed("remove the earlier socket");
    }
    // The path by the descriptor is short, as the address of a socket must be.
    const std::string path = absl::StrCat("/proc/self/fd/", fd_.get(), "/", kVaultSocketFile);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      return Failed("create the socket");
    }
    const bool is_own = info_.st_uid == geteuid();
    if ((!is_own && fchownat(fd_.get(), kVaultSocketFile, info_.st_uid, info_.st_gid,
                             AT_SYMLINK_NOFOLLOW) != 0) ||
        fchmodat(fd_.get(), kVaultSocketFile, is_own ? 0666 : 0600, 0) != 0) {
      return Failed("give the socket to the container");
    }
    // A client in the container that finds the queue full is refused instead of waiting.
    if (listen(fd.get(), SOMAXCONN) != 0) return Failed("listen");
    return fd;
  }

 private:
  UniqueFd fd_;
  struct stat info_ = {};
};

// Replaces the content of a file beside the secrets.
absl::Status Replace(int fd, std::string_view text) {
  const absl::Status written = WriteAllAt(fd, text, 0, "a file beside the secrets");
  if (!written.ok()) return errors::SecretUnavailable(ToStd(written.message()));
  if (ftruncate(fd, static_cast<off_t>(text.size())) == 0) return absl::OkStatus();
  return Failed("shorten a file beside the secrets");
}

absl::StatusOr<std::string> ReadAll(int fd, int64_t limit) {
  std::string text(static_cast<size_t>(limit), '\0');
  const ssize_t size = pread(fd, text.data(), text.size(), 0);
  if (size < 0) return Failed("read a file beside the secrets");
  text.resize(static_cast<size_t>(size));
  return text;
}

std::vector<VaultApiSecret> SecretsOf(const SecretReferences& references,
                                      const v1::SecretValues& values) {
  std::vector<VaultApiSecret> secrets;
  for (const auto& reference : references) {
    for (const auto& value : values.values()) {
      if (value.name() != reference.name()) continue;
      secrets.push_back({.name = reference.name(),
                         .version = reference.version(),
                         .value = Secret(value.value())});
    }
  }
  return secrets;
}

}  // namespace

std::string NewVaultToken() { return absl::StrCat("s.", RandomHex(kTokenBytes)); }

JobVault::JobVault(std::string token, UniqueFd reads)
    : token_(std::move(token)), reads_file_(std::move(reads)) {}

absl::StatusOr<std::unique_ptr<JobVault>> JobVault::Create(const Options& options,
                                                           const std::string& token,
                                                           const v1::SecretValues& values) {
  ASSIGN_OR_RETURN(const Folder folder, Folder::Open(options.folder));
  UniqueFd reads;
  RETURN_IF_ERROR(folder.Change([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const UniqueFd file, folder.CreateFile(kVaultTokenFile, kOwnerReads));
    RETURN_IF_ERROR(Replace(file.get(), token));
    ASSIGN_OR_RETURN(reads, folder.CreateFile(kVaultReadsFile, S_IRUSR | S_IWUSR));
    return absl::OkStatus();
  }));
  std::unique_ptr<JobVault> vault(new JobVault(token, std::move(reads)));
  RETURN_IF_ERROR(vault->Serve(options, values));
  return vault;
}

absl::StatusOr<std::unique_ptr<JobVault>> JobVault::Restore(const Options& options,
                                                            const v1::SecretValues& values) {
  ASSIGN_OR_RETURN(const Folder folder, Folder::Open(options.folder));
  const auto token_file = folder.Open(kVaultTokenFile, O_RDONLY);
  if (!token_file.ok()) return absl::NotFoundError("");
  ASSIGN_OR_RETURN(std::string token, ReadAll(token_file->get(), kMaxToken));
  ASSIGN_OR_RETURN(UniqueFd reads_file, folder.Open(kVaultReadsFile, O_RDWR));
  ASSIGN_OR_RETURN(const std::string reads, ReadAll(reads_file.get(), kMaxReads));
  std::unique_ptr<JobVault> vault(new JobVault(std::move(token), std::move(reads_file)));
  {
    MutexLock lock(vault->mutex_);
    for (const absl::string_view line : absl::StrSplit(reads, '\n', absl::SkipEmpty())) {
      const std::pair<std::string, std::string> parts = absl::StrSplit(line, ' ');
      int64_t count = 0;
      if (absl::SimpleAtoi(parts.second, &count)) vault->reads_[parts.first] = count;
    }
  }
  RETURN_IF_ERROR(vault->Serve(options, values));
  return vault;
}

absl::Status JobVault::Serve(const Options& options, const v1::SecretValues& values) {
  ASSIGN_OR_RETURN(const Folder folder, Folder::Open(options.folder));
  UniqueFd listener;
  RETURN_IF_ERROR(folder.Change([&]() -> absl::Status {
    ASSIGN_OR_RETURN(listener, folder.Listen());
    return absl::OkStatus();
  }));
  VaultApi api({.token = token_,
                .job = options.job,
                .deployment = options.deployment,
                .created = options.created,
                .expires = options.expires,
                .secrets = SecretsOf(options.references, values)});
  ASSIGN_OR_RETURN(
      socket_, VaultSocket::Serve(
                   std::move(listener),
                   {.api = std::move(api),
                    .admits = [this](int socket) { return Admits(socket); },
                    .on_read = [this](const std::vector<std::string>& names) { Count(names); }}));
  return absl::OkStatus();
}

void JobVault::SetContainer(const std::string& id) {
  MutexLock lock(mutex_);
  container_ = id;
}

bool JobVault::Admits(int socket) const {
  std::string container;
  {
    MutexLock lock(mutex_);
    container = container_;
  }
  if (!container.empty() && IsPeerInContainer(socket, container)) return true;
  LogLimited(LogLevel::kWarning, "a connection to the secrets of a container is refused", container,
             {{"container", container}});
  return false;
}

void JobVault::Count(const std::vector<std::string>& names) {
  MutexLock lock(mutex_);
  for (const std::string& name : names) ++reads_[name];
  std::string text;
  for (const auto& [name, count] : reads_) absl::StrAppend(&text, name, " ", count, "\n");
  if (const absl::Status written = Replace(reads_file_.get(), text); !written.ok()) {
    LogLimited(LogLevel::kWarning, "the reads of secrets cannot be stored", "vault-reads",
               {{"error", written}});
  }
}

std::map<std::string, int64_t> JobVault::Reads() const {
  MutexLock lock(mutex_);
  return reads_;
}

}  // namespace muster
