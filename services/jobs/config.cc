#include "services/jobs/config.h"

#include <optional>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "services/common/errors/base.h"
#include "services/common/service/common_fields.h"

namespace muster {
namespace {

constexpr std::string_view kHttps = "https://";

std::optional<std::string> CheckAddress(const std::string& text) {
  const bool is_base = text.starts_with(kHttps) && text.size() > kHttps.size() &&
                       text.find_first_of("/?# @", kHttps.size()) == std::string::npos;
  if (text.empty() || is_base) return std::nullopt;
  return "https://HOST:PORT";
}

// A path of Vault, which is a part of a URL.
std::optional<std::string> CheckPath(const std::string& text) {
  for (const char c : text) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) &&
        std::string_view("._-/").find(c) == std::string_view::npos) {
      return "a path of [A-Za-z0-9._-] with \"/\"";
    }
  }
  const bool has_slash = text.starts_with('/') || text.ends_with('/');
  return has_slash ? std::optional<std::string>("a path without \"/\" at its ends") : std::nullopt;
}

void BindVault(VaultOptions* vault, Config* file) {
  file->String("secrets.vault.address", &vault->address,
               "The server of the secrets \"vault:PATH#FIELD\": https://HOST:PORT of Vault or "
               "OpenBao. Empty: none.",
               CheckAddress);
  file->String("secrets.vault.ca_file", &vault->ca_file,
               "The CA of its certificate, PEM. Empty: those of the system.");
  file->String("secrets.vault.namespace", &vault->space, "Its namespace. Empty: none.", CheckPath);
  file->String("secrets.vault.mount", &vault->mount,
               "The path of its key-value engine, of version 2.", CheckPath);
  file->OneOf("secrets.vault.auth", &vault->method, "How this service logs in.",
              {"approle", "cert"});
  file->String("secrets.vault.auth_mount", &vault->auth_mount,
               "The path of this method. Empty: its name.", CheckPath);
  file->String("secrets.vault.role_id_file", &vault->role_id_file,
               "For approle: a file of mode 0600 with the role id.");
  file->String("secrets.vault.secret_id_file", &vault->secret_id_file,
               "For approle: a file of mode 0600 with the secret id, or with its wrapping token.");
  file->String("secrets.vault.secret_id_wrapping_path", &vault->secret_id_wrapping_path,
               "Where the wrapping token was created, as auth/approle/role/NAME/secret-id. Empty: "
               "the file has the secret id.",
               CheckPath);
  file->String("secrets.vault.certificate_file", &vault->certificate_file,
               "For cert: the client's certificate with its chain, PEM.");
  file->String("secrets.vault.key_file", &vault->key_file,
               "For cert: a file of mode 0600 with its key, PEM.");
  file->String("secrets.vault.certificate_role", &vault->certificate_role,
               "For cert: the role. Empty: Vault chooses one.");
  file->Duration("secrets.vault.wrap_ttl", &vault->wrap_ttl,
                 "Values are requested in wrapped answers of this time to live, for policies with "
                 "min_wrapping_ttl. 0: not wrapped.",
                 absl::ZeroDuration(), absl::Hours(1));
  file->Duration("secrets.vault.timeout", &vault->timeout, "How long a request may take.",
                 absl::Milliseconds(100), absl::Seconds(10));
}

}  // namespace

void BindJobsServiceConfig(JobsServiceConfig* config, Config* file) {
  BindStateFolder(&config->state_folder,
                  "The folder of the certificate, tls/, of the state, jobs.db, contents/ and "
                  "workspaces/, and of "
                  "the key that encrypts secrets and workspaces, store.key.",
                  file);
  file->Address("listen", &config->listen, "The address of gRPC. Port 0 means any free port.");
  file->AddressList("aggregator_targets", &config->aggregator_targets,
                    "The addresses of the aggregator: host:port each.");
  file->AddressList("relay_targets", &config->relay_targets,
                    "The addresses of the root relay: host:port each.");
  BindInspection(&config->health_port, &config->inspection_port, &config->addresses_file, file);
  BindLogConfig(&config->log, file);
  file->Duration("drain", &config->drain, "How long a stop waits for calls in progress.",
                 absl::ZeroDuration(), absl::Minutes(10));
  file->Int("threads.requests", &config->request_threads, "Threads for requests.", 1, 256);
  file->ByteSize("limits.disk_reserve", &config->disk_reserve,
                 "Disk space that is kept to start, and to cancel deployments, on a full disk; at "
                 "most 1/32 of the file system. 0: none.",
                 0, uint64_t{1} << 40);
  file->ByteSize("contents.quota", &config->content_quota,
                 "The largest size of the contents of files of deployments, with those that are "
                 "being uploaded; one operator may use half of it.",
                 uint64_t{1} << 20, uint64_t{1} << 50);
  file->Int("contents.max_count", &config->max_contents, "The largest number of these contents.", 1,
            10'000'000);
  file->ByteSize("workspaces.quota", &config->workspace_quota,
                 "The largest size of the versions of all workspaces, with those that are being "
                 "saved.",
                 uint64_t{1} << 20, uint64_t{1} << 50);
  BindVault(&config->vault, file);
}

absl::Status CheckJobsServiceConfig(const JobsServiceConfig& config) {
  const VaultOptions& vault = config.vault;
  if (vault.address.empty()) return absl::OkStatus();
  const auto missing = [](std::string_view field, std::string_view method) {
    return errors::InvalidConfig(absl::StrCat("secrets.vault.", std::string(field),
                                              ": must be set with auth: ", std::string(method)),
                                 "muster-jobs");
  };
  if (vault.method == "cert") {
    if (vault.certificate_file.empty()) return missing("certificate_file", "cert");
    return vault.key_file.empty() ? missing("key_file", "cert") : absl::OkStatus();
  }
  if (vault.role_id_file.empty()) return missing("role_id_file", "approle");
  return vault.secret_id_file.empty() ? missing("secret_id_file", "approle") : absl::OkStatus();
}

}  // namespace muster
