#include "services/agent/vault/vault_api.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/random_id.h"
#include "services/common/base/strings.h"
#include "services/common/base/utf8.h"
#include "services/common/identity/secret_json.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kApi = "/v1/";
constexpr std::string_view kMount = "secret/";
constexpr std::string_view kEntry = "deployment";
constexpr std::string_view kDescribe = "sys/internal/ui/mounts/";

bool IsSame(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

VaultApiAnswer Errors(int status, const std::vector<std::string>& errors) {
  return {.status = status, .body = Json({{"errors", errors}}).dump() + "\n", .read = {}};
}

VaultApiAnswer Denied() { return Errors(403, {"1 error occurred:\n\t* permission denied\n\n"}); }
VaultApiAnswer NotFound() { return Errors(404, {}); }

VaultApiAnswer Data(Json data, const std::vector<std::string>& warnings = {}) {
  const std::string id = RandomHex(16);
  Json json = {
      {"request_id", absl::StrCat(id.substr(0, 8), "-", id.substr(8, 4), "-", id.substr(12, 4), "-",
                                  id.substr(16, 4), "-", id.substr(20))},
      {"lease_id", ""},
      {"renewable", false},
      {"lease_duration", 0},
      {"data", std::move(data)},
      {"wrap_info", nullptr},
      {"warnings", warnings.empty() ? Json(nullptr) : Json(warnings)},
      {"auth", nullptr}};
  VaultApiAnswer answer{.status = 200, .body = json.dump() + "\n", .read = {}};
  WipeTexts(&json);
  return answer;
}

std::string Time(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E9SZ", time, absl::UTCTimeZone());
}

// Returns the value of a parameter of a query, or nothing. Numbers and words need no decoding.
std::optional<std::string_view> Parameter(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view part = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), part.size() + 1));
    if (part.starts_with(name) && part.substr(name.size()).starts_with('=')) {
      return part.substr(name.size() + 1);
    }
  }
  return std::nullopt;
}

// Returns true if the query asks for this version: for none, 0 or the number.
bool IsVersion(std::string_view query, int64_t version) {
  const auto text = Parameter(query, "version");
  int64_t number = 0;
  return !text || (absl::SimpleAtoi(ToAbsl(*text), &number) && (number == 0 || number == version));
}

bool IsEntry(std::string_view path) {
  return path == kEntry || (path.starts_with(kEntry) && path.substr(kEntry.size()) == "/");
}

// Returns NAME of "deployment/NAME", or nothing.
std::optional<std::string_view> NameIn(std::string_view path) {
  if (!path.starts_with(kEntry) || !path.substr(kEntry.size()).starts_with('/')) {
    return std::nullopt;
  }
  return path.substr(kEntry.size() + 1);
}

bool Consume(std::string_view prefix, std::string_view* text) {
  if (!text->starts_with(prefix)) return false;
  text->remove_prefix(prefix.size());
  return true;
}

}  // namespace

VaultApiAnswer VaultApi::Handle(const VaultApiRequest& request, absl::Time now) const {
  std::string_view path = request.target.substr(0, request.target.find('?'));
  std::string_view query = request.target.substr(path.size());
  if (!query.empty()) query.remove_prefix(1);
  if (!Consume(kApi, &path)) return NotFound();
  if (!IsSame(request.token, options_.token)) return Errors(403, {"permission denied"});
  if (request.wants_wrapping) return Denied();
  const bool lists =
      request.method == "LIST" || (request.method == "GET" && Parameter(query, "list") == "true");
  if (request.method != "GET" && !lists) return Denied();
  if (path == "auth/token/lookup-self" && !lists) return DescribeToken(now);
  if (Consume(kDescribe, &path)) return lists ? Denied() : DescribeEngine(path);
  if (!Consume(kMount, &path)) return Denied();
  if (lists) return Consume("metadata/", &path) ? List(path) : Denied();
  return Consume("data/", &path) ? Read(path, query) : Denied();
}

VaultApiAnswer VaultApi::Read(std::string_view path, std::string_view query) const {
  const std::optional<std::string_view> name = NameIn(path);
  if (!name && path != kEntry) return Denied();
  Json fields = Json::object();
  std::vector<std::string> read;
  std::vector<std::string> warnings;
  int64_t version = 1;
  for (const VaultApiSecret& secret : options_.secrets) {
    if (name && *name != secret.name) continue;
    if (name) version = secret.version;
    if (!IsUtf8(secret.value.view())) {
      warnings.push_back(absl::StrCat(secret.name, " is no text: read /secrets/", secret.name));
      continue;
    }
    fields[name ? "value" : secret.name] = std::string(secret.value.view());
    read.push_back(secret.name);
  }
  if (read.empty() || !IsVersion(query, version)) {
    WipeTexts(&fields);
    return {.status = 404,
            .body = Json({{"errors", Json::array()}, {"warnings", warnings}}).dump() + "\n"};
  }
  VaultApiAnswer answer =
      Data({{"data", std::move(fields)}, {"metadata", Metadata(version)}}, warnings);
  answer.read = std::move(read);
  return answer;
}

Json VaultApi::Metadata(int64_t version) const {
  return {{"created_time", Time(options_.created)},
          {"custom_metadata", nullptr},
          {"deletion_time", ""},
          {"destroyed", false},
          {"version", version}};
}

VaultApiAnswer VaultApi::List(std::string_view path) const {
  if (!IsEntry(path)) return Denied();
  Json names = Json::array();
  for (const VaultApiSecret& secret : options_.secrets) names.push_back(secret.name);
  return names.empty() ? NotFound() : Data({{"keys", names}});
}

VaultApiAnswer VaultApi::DescribeEngine(std::string_view path) const {
  if (!path.starts_with(kMount) && path != kMount.substr(0, kMount.size() - 1)) {
    return Errors(403,
                  {"preflight capability check returned 403, please ensure client's policies grant "
                   "access to this path"});
  }
  return Data({{"path", kMount},
               {"type", "kv"},
               {"description", "the secrets of the deployment"},
               {"local", false},
               {"options", {{"version", "2"}}}});
}

VaultApiAnswer VaultApi::DescribeToken(absl::Time now) const {
  const int64_t left = std::max<int64_t>(1, absl::ToInt64Seconds(options_.expires - now));
  return Data({{"accessor", ""},
               {"creation_time", absl::ToUnixSeconds(options_.created)},
               {"creation_ttl", absl::ToInt64Seconds(options_.expires - options_.created)},
               {"display_name", "muster"},
               {"entity_id", ""},
               {"expire_time", Time(options_.expires)},
               {"explicit_max_ttl", 0},
               {"id", options_.token},
               {"issue_time", Time(options_.created)},
               {"meta", {{"job", options_.job}, {"deployment", options_.deployment}}},
               {"num_uses", 0},
               {"orphan", true},
               {"path", "auth/muster/deployment"},
               {"policies", {"deployment"}},
               {"renewable", false},
               {"ttl", left},
               {"type", "service"}});
}

}  // namespace muster
