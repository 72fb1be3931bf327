#include "cli/rpc/credentials_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/output/format.h"
#include "cli/rpc/id_prefix.h"
#include "services/common/base/error.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/cli.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/identity.h"

namespace muster::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kSuffix[] = ".json";
constexpr char kSonobuoyFile[] = "/tmp/sonobuoy.json";

std::string Folder(const Home& home) { return home.path() + "/credentials"; }

absl::Status ReadText(Json& json, const char* name, std::string& value) {
  const auto it = json.find(name);
  if (it == json.end() || !it->is_string() || it->get_ref<const std::string&>().empty()) {
    return errors::InvalidCredentials(
        absl::StrCat("field \"", name, "\" is missing or not a string"));
  }
  value = std::move(it->get_ref<std::string&>());
  return absl::OkStatus();
}

absl::StatusOr<StatusCredentials> Parse(std::string_view text) {
  Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return errors::InvalidCredentials("the file is not a JSON object");
  StatusCredentials credentials;
  std::string created_at;
  std::string key;
  for (const auto& [name, value] :
       {std::pair<const char*, std::string*>{"host_address", &credentials.host_address},
        {"created_at", &created_at},
        {"ca_cert", &credentials.ca_cert},
        {"client_cert", &credentials.client_cert},
        {"client_key", &key}}) {
    RETURN_IF_ERROR(ReadText(json, name, *value));
  }
  credentials.client_key = Secret(std::move(key));
  if (!absl::StartsWith(credentials.host_address, "https://")) {
    return errors::InvalidCredentials("field \"host_address\" does not begin with https://");
  }
  std::string cause;
  if (!absl::ParseTime(absl::RFC3339_full, created_at, &credentials.created_at, &cause)) {
    return errors::InvalidCredentials(absl::StrCat("field \"created_at\" is not a time: ", cause));
  }
  return credentials;
}

absl::Status Check(const StatusCredentials& credentials, absl::Time now, absl::Duration max_age) {
  const absl::Duration age = now - credentials.created_at;
  if (age > max_age || age < -absl::Minutes(5)) {
    const std::string fault = age > max_age ? absl::StrCat("is ", HumanDuration(age), " old")
                                            : "was created in the future";
    return errors::CredentialsTooOld(fault, HumanDuration(max_age));
  }
  const auto certificate = Certificate::FromPem(credentials.client_cert);
  if (!certificate.ok()) {
    return errors::InvalidCredentials(
        absl::StrCat("client_cert: ", certificate.status().message()));
  }
  if (const auto ca = Certificate::FromPem(credentials.ca_cert); !ca.ok()) {
    return errors::InvalidCredentials(absl::StrCat("ca_cert: ", ca.status().message()));
  }
  if (now <= certificate->NotAfter()) return absl::OkStatus();
  return errors::CredentialsExpired(Rfc3339(certificate->NotAfter()));
}

std::filesystem::file_time_type ChangeTime(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::last_write_time(path, ignored);
}

// Returns the newest file in the folder.
std::optional<std::string> NewestIn(const std::string& folder) {
  std::optional<std::filesystem::path> newest;
  std::error_code fault;
  for (const auto& entry : std::filesystem::directory_iterator(folder, fault)) {
    if (entry.path().extension() != kSuffix) continue;
    if (!newest || ChangeTime(entry.path()) > ChangeTime(*newest)) newest = entry.path();
  }
  return newest ? std::optional(newest->string()) : std::nullopt;
}

// Returns the only file in the folder whose run begins with `run`.
absl::StatusOr<std::optional<std::string>> FindIn(const std::string& folder,
                                                  const std::string& run) {
  std::vector<std::string> runs;
  std::error_code fault;
  for (const auto& entry : std::filesystem::directory_iterator(folder, fault)) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() == kSuffix && absl::StartsWith(path.stem().string(), run)) {
      runs.push_back(path.stem());
    }
  }
  if (runs.empty()) return std::nullopt;
  std::ranges::sort(runs);
  // The whole id is the beginning of the name of a copy, such as 0123456789abcdef-old.json.
  if (runs.size() > 1 && runs.front() != run) return SeveralIdsError(kRunIds, run, std::move(runs));
  return absl::StrCat(folder, "/", runs.front(), kSuffix);
}

bool IsOwnPlainFile(const char* path) {
  struct stat info;
  return lstat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid();
}

}  // namespace

std::string StatusCredentials::StatusUrl() const {
  return absl::StrCat(host_address, absl::EndsWith(host_address, "/") ? "" : "/", "status");
}

Secret CredentialsJson(const StatusCredentials& credentials) {
  Json json;
  json["host_address"] = credentials.host_address;
  json["created_at"] = Rfc3339(credentials.created_at);
  json["ca_cert"] = credentials.ca_cert;
  json["client_cert"] = credentials.client_cert;
  json["client_key"] = std::string(credentials.client_key.view());
  return Secret(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::string CredentialsPath(const Home& home, const std::string& run) {
  return absl::StrCat(Folder(home), "/", run, kSuffix);
}

absl::Status WriteCredentials(const Home& home, const std::string& run,
                              const StatusCredentials& credentials) {
  const std::string folder = Folder(home);
  RETURN_IF_ERROR(MakeFolders(PosixFileOps(), folder));
  struct stat info;
  if (lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != geteuid()) {
    return errors::CredentialsFolderExposed(folder);
  }
  return WriteFileAtomically(CredentialsPath(home, run), CredentialsJson(credentials).view());
}

absl::StatusOr<StatusCredentials> ReadCredentials(const std::string& path, absl::Time now,
                                                  absl::Duration max_age) {
  auto content = ReadSecretFile(path, [](std::string_view text) { return Parse(text).status(); });
  if (absl::IsNotFound(content.status())) {
    return errors::CredentialsNotFound();
  }
  if (!content.ok()) return content.status();
  const Secret text(*std::move(content));
  auto credentials = Parse(text.view());
  if (!credentials.ok()) return credentials.status();
  RETURN_IF_ERROR(Check(*credentials, now, max_age));
  return credentials;
}

void RemoveExpiredCredentials(const Home& home, absl::Time now) {
  std::error_code error;
  for (std::filesystem::directory_iterator it(Folder(home), error), end; !error && it != end;
       it.increment(error)) {
    const std::string path = it->path().string();
    const auto read = ReadCredentials(path, now, absl::InfiniteDuration());
    if (ReasonOf(read.status()) == "CERTIFICATE_EXPIRED") unlink(path.c_str());
  }
}

std::optional<Identity> IdentityOf(const StatusCredentials& credentials) {
  const auto certificate = Certificate::FromPem(credentials.client_cert);
  const auto uri = certificate.ok() ? certificate->Uri() : certificate.status();
  auto identity = uri.ok() ? ParseOwnIdentity(*uri) : uri.status();
  return identity.ok() ? std::optional(*std::move(identity)) : std::nullopt;
}

absl::Status CheckRun(const StatusCredentials& credentials, const std::string& run) {
  const auto identity = IdentityOf(credentials);
  if (!identity) return absl::OkStatus();  // of another program: the run is unknown
  const auto own = RunOf(*identity);
  if (!own || absl::StartsWith(ToAbsl(*own), run)) return absl::OkStatus();
  return errors::CredentialsOfOtherRun(*own, Printable(run));
}

absl::StatusOr<std::optional<std::string>> FindCredentials(const Home& home,
                                                           const std::string& run) {
  if (const char* file = std::getenv("MUSTER_CREDENTIALS"); file != nullptr && *file != '\0') {
    return std::string(file);
  }
  if (!run.empty()) return FindIn(Folder(home), run);
  if (auto file = NewestIn(Folder(home))) return file;
  if (IsOwnPlainFile(kSonobuoyFile)) return kSonobuoyFile;
  return std::nullopt;
}

}  // namespace muster::cli
