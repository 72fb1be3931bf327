#include "cli/bundles/image_copier.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "services/common/base/clock.h"
#include "services/common/base/image_reference.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/base/subprocess.h"
#include "services/common/base/utf8.h"
#include "services/common/errors/cli.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kTick = absl::Milliseconds(200);
constexpr size_t kTail = 4'096;
constexpr size_t kMaxCause = 1'024;
constexpr size_t kMaxCertificates = size_t{1} << 20;
// skopeo keeps the format "dir" between its versions by this file.
constexpr char kFolderVersion[] = "Directory Transport Version: 1.1\n";
constexpr char kVersionFile[] = "version";
constexpr char kManifestFile[] = "manifest.json";
constexpr std::string_view kPlatformSuffix = ".manifest.json";
constexpr char kCheckRegistry[] =
    "Check the name, the registry, and the credentials (--authfile). Then run the command again.";

// Docker asks these registries by http too.
bool IsLocal(const std::string& image) {
  const std::string host = RegistryOf(image);
  return host == "localhost" || absl::StartsWith(host, "localhost:") ||
         absl::StartsWith(host, "127.");
}

// Returns the bytes that a process has read and written; -1 if that cannot be found out.
int64_t TrafficOf(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/io"));
  int64_t sum = 0;
  int found = 0;
  for (std::string line; std::getline(file, line);) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(": ", 1));
    int64_t value = 0;
    if ((parts.first == "rchar" || parts.first == "wchar") &&
        absl::SimpleAtoi(parts.second, &value)) {
      sum += value;
      ++found;
    }
  }
  return found == 2 ? sum : -1;
}

// Returns the cause that skopeo printed last.
std::string CauseOf(const std::string& text) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipWhitespace());
  if (lines.empty()) return "skopeo printed no cause";
  absl::string_view cause = lines.back();
  const size_t message = cause.find("msg=");
  if (message != absl::string_view::npos) cause.remove_prefix(message + 4);
  // It is quoted, with quoted names in it.
  std::string plain;
  if (absl::ConsumePrefix(&cause, "\"") && absl::ConsumeSuffix(&cause, "\"") &&
      absl::CUnescape(cause, &plain)) {
    cause = plain;
  }
  return std::string(CutUtf8(CleanUtf8(ToStd(cause)), kMaxCause));
}

// Returns the bytes of the blobs so far.
int64_t BytesIn(const std::string& folder) {
  int64_t sum = 0;
  std::error_code fault;
  for (fs::directory_iterator entry(folder, fault); !fault && entry != fs::directory_iterator();
       entry.increment(fault)) {
    std::error_code gone;
    const std::string name = entry->path().filename().string();
    if (name == kVersionFile || absl::EndsWith(name, kManifestFile)) continue;
    const auto size = fs::file_size(entry->path(), gone);
    if (!gone) sum += static_cast<int64_t>(size);
  }
  return sum;
}

std::vector<std::string> CopyArguments() {
  return {"copy", "--quiet", "--all", "--preserve-digests", "--remove-signatures"};
}

absl::Status FileError(const std::string& image, const std::error_code& fault) {
  return errors::ImageCopyFailed(image, fault.message(), "Check the disk of the temporary folder.");
}

}  // namespace

absl::StatusOr<std::string> ImageCopier::Run(const Call& call) {
  SubprocessOptions options;
  options.argv = {options_.program, "--insecure-policy"};  // digests decide, not signatures
  options.argv.insert(options.argv.end(), call.arguments.begin(), call.arguments.end());
  options.working_directory = work_.path();
  options.environment = AllowListedEnvironment(
      {"HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "REGISTRY_AUTH_FILE", "DOCKER_CONFIG",
       "http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY",
       "SSL_CERT_FILE", "SSL_CERT_DIR"});
  options.environment.insert(options.environment.end(), {"PATH=/usr/local/bin:/usr/bin:/bin",
                                                         "LC_ALL=C", "TMPDIR=" + work_.path()});
  options.out = call.output > 0 ? ChildOutput::Tail(call.output) : ChildOutput::Null();
  options.err = ChildOutput::Tail(kTail);
  auto child = Subprocess::Start(std::move(options));
  if (!child.ok()) {
    return errors::ImageCopyFailed(call.image, ToStd(child.status().message()),
                                   "Install the program skopeo.");
  }
  int64_t traffic = -1;
  absl::Duration moved = SystemClock().MonotonicNow();
  for (;;) {
    const auto exit = (*child)->Wait(kTick);
    if (call.tick) RETURN_IF_ERROR(call.tick());
    if (exit && exit->ok()) return (*child)->StdoutTail();
    if (exit) {
      return errors::ImageCopyFailed(
          call.image, exit->signal != 0 ? exit->Describe() : CauseOf((*child)->StderrTail()),
          kCheckRegistry);
    }
    if (stopped_()) return absl::CancelledError("interrupted");
    const absl::Duration now = SystemClock().MonotonicNow();
    if (const int64_t bytes = TrafficOf((*child)->pid()); bytes < 0 || bytes != traffic) {
      traffic = bytes;
      moved = now;
    }
    if (now - moved > options_.stall_limit) {
      return errors::ImageCopyFailed(call.image,
                                     absl::StrCat("nothing was sent or received for ",
                                                  absl::FormatDuration(options_.stall_limit)),
                                     kCheckRegistry);
    }
  }
}

absl::StatusOr<std::string> ImageCopier::CertificateFolder() {
  const std::string folder = work_.path() + "/certificates";
  std::error_code ignored;
  fs::create_directory(folder, ignored);
  ASSIGN_OR_RETURN(const std::string text, ReadFileBounded(options_.ca_file, kMaxCertificates));
  RETURN_IF_ERROR(WriteFileAtomically(folder + "/ca.crt", text));
  return folder;
}

absl::StatusOr<std::vector<std::string>> ImageCopier::RegistryArguments(const std::string& prefix,
                                                                        const std::string& image) {
  if (work_.path().empty()) {
    return errors::ImageCopyFailed(image, "no temporary folder can be created", "Set TMPDIR.");
  }
  std::vector<std::string> arguments;
  if (IsLocal(image)) arguments.push_back(absl::StrCat("--", prefix, "tls-verify=false"));
  if (!options_.auth_file.empty()) {
    arguments.push_back(absl::StrCat("--authfile=", fs::absolute(options_.auth_file).string()));
  }
  if (!options_.ca_file.empty()) {
    ASSIGN_OR_RETURN(const std::string folder, CertificateFolder());
    arguments.push_back(absl::StrCat("--", prefix, "cert-dir=", folder));
  }
  return arguments;
}

absl::StatusOr<std::string> ImageCopier::ReadManifestOf(const std::string& image) {
  Call call{.arguments = {"inspect", "--raw"}, .image = image, .output = kMaxManifest + 1};
  ASSIGN_OR_RETURN(const auto more, RegistryArguments("", image));
  call.arguments.insert(call.arguments.end(), more.begin(), more.end());
  call.arguments.push_back("docker://" + ImageInRegistry(image, RegistryOf(image)));
  ASSIGN_OR_RETURN(std::string text, Run(call));
  if (absl::StrCat("sha256:", ToHex(Sha256::Of(text))) == ToAbsl(DigestOf(image))) return text;
  return errors::ImageCopyFailed(image, "the registry returned another manifest",
                                 "Check the registry.");
}

absl::Status ImageCopier::Pull(const std::string& image, int64_t size, const std::string& blobs,
                               const std::function<void(int64_t)>& progress) {
  Call call{.arguments = CopyArguments(), .image = image};
  ASSIGN_OR_RETURN(const auto more, RegistryArguments("src-", image));
  const TemporaryFolder folder(fs::path(blobs).parent_path().string());
  const std::string target = folder.path() + "/image";
  call.arguments.insert(call.arguments.end(), more.begin(), more.end());
  call.arguments.push_back("docker://" + ImageInRegistry(image, RegistryOf(image)));
  call.arguments.push_back("dir:" + target);
  call.tick = [&]() -> absl::Status {
    const int64_t bytes = BytesIn(target);
    progress(std::min(bytes, size));
    if (bytes <= size) return absl::OkStatus();
    return errors::ImageCopyFailed(image, "the registry sends more than the manifest names",
                                   "Check the registry.");
  };
  RETURN_IF_ERROR(Run(call).status());
  std::error_code fault;
  for (const auto& entry : fs::directory_iterator(target, fault)) {
    std::string name = entry.path().filename().string();
    if (name == kVersionFile) continue;
    if (name == kManifestFile) name = std::string(DigestOf(image).substr(7));
    if (absl::EndsWith(name, ToAbsl(kPlatformSuffix))) {
      name.resize(name.size() - kPlatformSuffix.size());
    }
    if (!IsSha256Hex(name)) continue;
    fs::rename(entry.path(), fs::path(blobs) / name, fault);
    if (fault) break;
  }
  return fault ? FileError(image, fault) : absl::OkStatus();
}

absl::Status ImageCopier::Push(const BundleImage& image, const std::string& blobs,
                               const std::string& target) {
  Call call{.arguments = CopyArguments(), .image = target};
  ASSIGN_OR_RETURN(const auto more, RegistryArguments("dest-", target));
  // skopeo reads its own layout of a folder: an OCI layout cannot have the manifests of Docker.
  const TemporaryFolder folder(fs::path(blobs).parent_path().string());
  const std::string digest(DigestOf(target).substr(7));
  std::error_code fault;
  const auto link = [&](const std::string& sha256, const std::string& name) {
    if (!fault)
      fs::create_hard_link(fs::path(blobs) / sha256, fs::path(folder.path()) / name, fault);
  };
  link(digest, kManifestFile);
  for (const std::string& sha256 : image.manifests) {
    link(sha256, absl::StrCat(sha256, ToAbsl(kPlatformSuffix)));
  }
  for (const auto& [sha256, size] : image.blobs) {
    if (!image.manifests.contains(sha256)) link(sha256, sha256);
  }
  if (fault) return FileError(target, fault);
  RETURN_IF_ERROR(
      WriteFileAtomically(absl::StrCat(folder.path(), "/", kVersionFile), kFolderVersion));
  call.arguments.insert(call.arguments.end(), more.begin(), more.end());
  call.arguments.push_back("dir:" + folder.path());
  call.arguments.push_back(
      absl::StrCat("docker://", RegistryOf(target), "/", RepositoryOf(target), ":muster-", digest));
  RETURN_IF_ERROR(Run(call).status());
  return ReadManifestOf(target).status();
}

}  // namespace muster::cli
