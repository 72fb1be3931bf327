#include "services/jobs/vault/vault_session.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/vault.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr absl::Duration kFailurePause = absl::Seconds(1);
// A token that expires sooner may expire in transit.
constexpr absl::Duration kExpiryMargin = absl::Seconds(2);

absl::StatusOr<std::string> ReadCredential(const std::string& path) {
  const auto read = ReadSecretFile(path);
  if (!read.ok()) return errors::VaultLoginFailed(ToStd(read.status().message()));
  return std::string(absl::StripAsciiWhitespace(*read));
}

// Returns the secret id of an earlier unwrapping of this token, or "".
std::string KeptSecretId(const std::string& path, const std::string& wrapping_digest) {
  const auto read = ReadSecretFile(path);
  if (!read.ok()) return "";
  const Json json = Json::parse(*read, nullptr, false);
  if (!json.is_object() || json.value("wrapping_sha256", "") != wrapping_digest) return "";
  return json.value("secret_id", "");
}

}  // namespace

VaultSession::VaultSession(VaultOptions options, const Clock& clock)
    : options_(std::move(options)), clock_(clock), connection_(options_) {}

VaultSession::TokenPointer VaultSession::Current() {
  MutexLock lock(mutex_);
  if (token_ == nullptr || token_->endless) return token_;
  return clock_.MonotonicNow() + kExpiryMargin < token_->expires ? token_ : nullptr;
}

void VaultSession::Set(Token token) {
  MutexLock lock(mutex_);
  token_ = std::make_shared<const Token>(std::move(token));
}

void VaultSession::Forget(const TokenPointer& token) {
  MutexLock lock(mutex_);
  if (token_ == token) token_ = nullptr;
}

absl::StatusOr<VaultSession::TokenPointer> VaultSession::Obtain() {
  if (TokenPointer token = Current(); token != nullptr) return token;
  MutexLock lock(login_mutex_);
  if (TokenPointer token = Current(); token != nullptr) return token;  // of another thread
  if (!login_failure_.ok() && clock_.MonotonicNow() < login_again_at_) return login_failure_;
  auto token = Login();
  login_failure_ = token.status();
  if (!token.ok()) {
    login_again_at_ = clock_.MonotonicNow() + kFailurePause;
    LogLimited(LogLevel::kWarning, "the login to Vault failed", "vault",
               {{"address", options_.address}, {"error", token.status()}});
    return token.status();
  }
  Log(LogLevel::kInfo, "logged in to Vault",
      {{"address", options_.address}, {"lease", absl::FormatDuration(token->lease)}});
  Set(*std::move(token));
  TokenPointer obtained = Current();
  if (obtained == nullptr) return errors::VaultLoginFailed("the token expires at once");
  return obtained;
}

absl::StatusOr<VaultSession::Token> VaultSession::Login() {
  connection_.Reset();
  ASSIGN_OR_RETURN(Json credentials, Credentials());
  const std::string mount = options_.auth_mount.empty() ? options_.method : options_.auth_mount;
  ASSIGN_OR_RETURN(const auto answer,
                   connection_.Call({.method = "POST",
                                     .path = absl::StrCat("auth/", mount, "/login"),
                                     .body = std::move(credentials)}));
  if (!answer.ok()) return errors::VaultLoginFailed(answer.Errors());
  return TokenIn(answer);
}

absl::StatusOr<Json> VaultSession::Credentials() {
  if (options_.method == "cert") {
    return options_.certificate_role.empty() ? Json::object()
                                             : Json({{"name", options_.certificate_role}});
  }
  ASSIGN_OR_RETURN(std::string role, ReadCredential(options_.role_id_file));
  ASSIGN_OR_RETURN(std::string secret, ReadCredential(options_.secret_id_file));
  if (!options_.secret_id_wrapping_path.empty()) {
    ASSIGN_OR_RETURN(secret, UnwrapSecretId(secret));
  }
  return Json({{"role_id", std::move(role)}, {"secret_id", std::move(secret)}});
}

// A disk that is full does not cost the secret id: the next login writes the file again.
void VaultSession::KeepUnwrapped() {
  if (unwrapped_.stored) return;
  const Json kept = {{"wrapping_sha256", unwrapped_.wrapping_digest},
                     {"secret_id", std::string(unwrapped_.secret_id.view())}};
  const absl::Status written = WriteFileAtomically(options_.unwrapped_file, kept.dump());
  unwrapped_.stored = written.ok();
  if (written.ok()) return;
  LogLimited(LogLevel::kError,
             "the secret id of Vault is only in memory: a restart needs a new wrapping token",
             "vault-unwrapped", {{"file", options_.unwrapped_file}, {"error", written}});
}

// A wrapping token is valid once: its secret id is kept for later logins and the next start.
absl::StatusOr<std::string> VaultSession::UnwrapSecretId(const std::string& wrapping_token) {
  const std::string digest = ToHex(Sha256::Of(wrapping_token));
  if (unwrapped_.wrapping_digest == digest) {
    KeepUnwrapped();
    return std::string(unwrapped_.secret_id.view());
  }
  if (std::string kept = KeptSecretId(options_.unwrapped_file, digest); !kept.empty()) return kept;
  ASSIGN_OR_RETURN(const auto wrapping, connection_.Call({.method = "POST",
                                                          .path = "sys/wrapping/lookup",
                                                          .body = {{"token", wrapping_token}}}));
  if (!wrapping.ok()) {
    return errors::VaultLoginFailed(
        absl::StrCat("the wrapping token of the secret id cannot be used (if it has not expired, "
                     "another program has read the secret id: destroy it in Vault): ",
                     wrapping.Errors()));
  }
  const std::string path = wrapping.TextAt({"data", "creation_path"});
  if (path != options_.secret_id_wrapping_path) {
    return errors::VaultLoginFailed(absl::StrCat("the wrapping token was created at ", path,
                                                 ", and not at ",
                                                 options_.secret_id_wrapping_path));
  }
  ASSIGN_OR_RETURN(
      const auto unwrapped,
      connection_.Call({.method = "POST", .path = "sys/wrapping/unwrap", .token = wrapping_token}));
  std::string secret = unwrapped.TextAt({"data", "secret_id"});
  if (secret.empty()) return errors::VaultLoginFailed("the wrapping token has no secret id");
  unwrapped_ = {.wrapping_digest = digest, .secret_id = Secret(secret)};
  KeepUnwrapped();
  return secret;
}

absl::StatusOr<VaultSession::Token> VaultSession::TokenIn(const VaultAnswer& answer) const {
  const Json& lease = answer.At({"auth", "lease_duration"});
  const Json& renewable = answer.At({"auth", "renewable"});
  std::string text = answer.TextAt({"auth", "client_token"});
  if (text.empty() || !lease.is_number_integer()) {
    return errors::VaultAnswerInvalid("the login", "it has no token");
  }
  const absl::Duration now = clock_.MonotonicNow();
  Token token;
  token.text = Secret(std::move(text));
  token.lease = absl::Seconds(lease.get<int64_t>());
  token.expires = now + token.lease;
  token.renew_at = now + token.lease / 2;
  token.renewable = renewable == Json(true);
  token.endless = token.lease <= absl::ZeroDuration();
  return token;
}

absl::Status VaultSession::Maintain() {
  ASSIGN_OR_RETURN(const TokenPointer token, Obtain());
  if (token->endless || !token->renewable || clock_.MonotonicNow() < token->renew_at) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const auto answer, connection_.Call({.method = "POST",
                                                        .path = "auth/token/renew-self",
                                                        .body = Json::object(),
                                                        .token = token->text.view()}));
  if (!answer.ok()) {
    Forget(token);
    return Obtain().status();
  }
  ASSIGN_OR_RETURN(Token renewed, TokenIn(answer));
  Set(std::move(renewed));
  return absl::OkStatus();
}

// 403 does not tell an expired or revoked token from a path that the policy does not admit.
bool VaultSession::IsAccepted(const Token& token) {
  const auto answer = connection_.Call(
      {.method = "GET", .path = "auth/token/lookup-self", .token = token.text.view()});
  return answer.ok() && answer->ok();
}

absl::StatusOr<VaultAnswer> VaultSession::Get(const std::string& path, absl::Duration wrap_ttl) {
  VaultRequest request{.method = "GET", .path = path, .wrap_ttl = wrap_ttl};
  for (bool again = false;; again = true) {
    ASSIGN_OR_RETURN(const TokenPointer token, Obtain());
    request.token = token->text.view();
    ASSIGN_OR_RETURN(auto answer, GetOnce(request));
    if (answer.code() == 200 || answer.code() == 404) return answer;
    if (answer.code() != 403) {
      return errors::VaultFailed(VaultCallName(request), answer.code(), answer.Errors());
    }
    if (again || IsAccepted(*token)) {
      return errors::VaultPermissionDenied(VaultCallName(request), answer.Errors());
    }
    Forget(token);
  }
}

// Unwraps the answer if the server has wrapped it.
absl::StatusOr<VaultAnswer> VaultSession::GetOnce(const VaultRequest& request) {
  ASSIGN_OR_RETURN(auto answer, connection_.Call(request));
  if (!answer.ok() || !answer.At({"wrap_info"}).is_object()) return answer;
  const Secret wrapping(answer.TextAt({"wrap_info", "token"}));
  ASSIGN_OR_RETURN(auto unwrapped, connection_.Call({.method = "POST",
                                                     .path = "sys/wrapping/unwrap",
                                                     .token = wrapping.view()}));
  if (unwrapped.ok()) return unwrapped;
  return errors::VaultAnswerInvalid(VaultCallName(request), unwrapped.Errors());
}

}  // namespace muster
