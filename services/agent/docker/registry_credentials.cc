#include "services/agent/docker/registry_credentials.h"

#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"
#include "services/agent/docker/engine_json.h"
#include "services/common/base/image_reference.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/docker.h"

namespace muster {
namespace {

using Json = nlohmann::json;

// Returns the registry of a key of `auths`, which may be an address with a path.
std::string RegistryOfKey(std::string_view key) {
  absl::string_view host = ToAbsl(key);
  if (!absl::ConsumePrefix(&host, "https://")) absl::ConsumePrefix(&host, "http://");
  host = host.substr(0, host.find('/'));
  // A name without a dot is no registry of Docker Hub's images.
  return absl::StrContains(host, '.') ? RegistryOf(absl::StrCat(host, "/")) : std::string(host);
}

// Go's decoder demands the padding.
std::string Encoded(const Json& credentials) {
  const std::string text = credentials.dump(-1, ' ', false, Json::error_handler_t::replace);
  return absl::StrReplaceAll(absl::Base64Escape(text), {{"+", "-"}, {"/", "_"}});
}

// Returns what the daemon sends to the registry, or nothing if the entry has no credentials.
std::optional<Json> CredentialsOf(const Json& entry, const std::string& registry) {
  Json credentials = {{"serveraddress", registry}};
  if (const auto token = Member<std::string>(entry, "identitytoken", ""); !token.empty()) {
    credentials["identitytoken"] = token;
    return credentials;
  }
  auto user = Member<std::string>(entry, "username", "");
  auto password = Member<std::string>(entry, "password", "");
  if (std::string pair; absl::Base64Unescape(Member<std::string>(entry, "auth", ""), &pair)) {
    const size_t colon = pair.find(':');
    if (colon != std::string::npos) {
      user = pair.substr(0, colon);
      password = pair.substr(colon + 1);
    }
  }
  if (user.empty() || password.empty()) return std::nullopt;
  credentials["username"] = user;
  credentials["password"] = password;
  return credentials;
}

}  // namespace

absl::StatusOr<nlohmann::json> RegistryCredentials::Read() const {
  if (path_.empty()) return Json::object();
  const auto text = ReadSecretFile(path_);
  if (absl::IsNotFound(text.status())) return Json::object();
  if (!text.ok()) {
    return errors::RegistryCredentialsUnusable(path_, ToStd(text.status().message()));
  }
  Json json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return errors::RegistryCredentialsUnusable(path_, "it is not a JSON object");
  }
  for (const char* helper : {"credsStore", "credHelpers"}) {
    if (!json.contains(helper)) continue;
    return errors::RegistryCredentialsUnusable(
        path_, absl::StrCat("it names ", helper, ", which the agent does not start"));
  }
  return json;
}

absl::StatusOr<std::string> RegistryCredentials::HeaderFor(std::string_view image) const {
  ASSIGN_OR_RETURN(const Json json, Read());
  const std::string registry = RegistryOf(image);
  const Json auths = ObjectIn(json, "auths");
  for (const auto& [key, entry] : auths.items()) {
    if (RegistryOfKey(key) != registry) continue;
    const auto credentials = CredentialsOf(entry, registry);
    if (credentials) return Encoded(*credentials);
    return errors::RegistryCredentialsUnusable(
        path_, absl::StrCat("the entry of ", registry, " has neither auth nor identitytoken"));
  }
  return Encoded(Json::object());
}

absl::StatusOr<std::string> RegistryCredentials::NameInMirror(const std::string& image) const {
  if (DigestOf(image).empty()) return image;
  ASSIGN_OR_RETURN(const Json json, Read());
  const std::string registry = RegistryOf(image);
  const auto mirrors = json.find("mirrors");
  if (mirrors == json.end()) return image;
  if (!mirrors->is_object()) {
    return errors::RegistryCredentialsUnusable(path_, "mirrors is not a JSON object");
  }
  for (const auto& [key, mirror] : mirrors->items()) {
    if (RegistryOfKey(key) != registry) continue;
    const std::string prefix = mirror.is_string() ? mirror.get<std::string>() : "";
    if (IsRegistryPrefix(prefix)) return ImageInRegistry(image, prefix);
    return errors::RegistryCredentialsUnusable(
        path_, absl::StrCat("the mirror of ", registry, " is not HOST, HOST:PORT or HOST/PREFIX"));
  }
  return image;
}

}  // namespace muster
