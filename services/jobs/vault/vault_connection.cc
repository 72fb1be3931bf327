#include "services/jobs/vault/vault_connection.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/base/utf8.h"
#include "services/common/errors/vault.h"
#include "services/common/identity/secret_json.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxIdle = 8;
constexpr size_t kMaxPem = size_t{256} << 10;
constexpr size_t kMaxErrorText = 500;
constexpr size_t kUsualAnswer = size_t{16} << 10;

struct Body {
  std::string text;
  bool too_large = false;
};

size_t Receive(char* data, size_t, size_t size, void* user) {
  auto& body = *static_cast<Body*>(user);
  if (body.text.size() + size > kMaxVaultAnswer) {
    body.too_large = true;
    return 0;
  }
  body.text.append(data, size);
  return size;
}

// Texts of another machine, for one line of a log or a message.
std::string OneLine(std::string text) {
  text = absl::StrReplaceAll(text, {{"\n", " "}, {"\t", " "}, {"\r", " "}});
  return std::string(CutUtf8(text, kMaxErrorText));
}

bool IsAboutCertificates(CURLcode code) {
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
      return true;
    default:
      return false;
  }
}

absl::Status FileError(const absl::Status& status) {
  return errors::VaultLoginFailed(ToStd(status.message()));
}

}  // namespace

std::string VaultCallName(const VaultRequest& request) {
  return absl::StrCat(request.method, " ", request.path.substr(0, request.path.find('?')));
}

VaultAnswer::~VaultAnswer() { WipeTexts(&json_); }

const Json& VaultAnswer::At(std::initializer_list<std::string_view> path) const {
  static const Json kNothing;
  const Json* at = &json_;
  for (const std::string_view name : path) {
    if (!at->is_object()) return kNothing;
    const auto found = at->find(name);
    if (found == at->end()) return kNothing;
    at = &*found;
  }
  return *at;
}

std::string VaultAnswer::TextAt(std::initializer_list<std::string_view> path) const {
  const Json& found = At(path);
  return found.is_string() ? found.get<std::string>() : "";
}

std::string VaultAnswer::Errors() const {
  std::vector<std::string> texts;
  if (const Json& errors = At({"errors"}); errors.is_array()) {
    for (const Json& error : errors) {
      if (error.is_string()) texts.push_back(error.get<std::string>());
    }
  }
  return texts.empty() ? "it states no reason" : OneLine(absl::StrJoin(texts, "; "));
}

void VaultConnection::Reset() {
  MutexLock lock(mutex_);
  ++generation_;
  idle_.clear();
}

absl::StatusOr<VaultConnection::Handle> VaultConnection::Acquire() {
  Handle handle;
  {
    MutexLock lock(mutex_);
    handle.generation = generation_;
    if (!idle_.empty()) {
      handle.curl = std::move(idle_.back());
      idle_.pop_back();
      return handle;
    }
  }
  std::string ca;
  std::string certificate;
  Secret key;
  if (!options_.ca_file.empty()) {
    auto read = ReadFileBounded(options_.ca_file, kMaxPem);
    if (!read.ok()) return FileError(read.status());
    ca = *std::move(read);
  }
  if (options_.method == "cert") {
    auto read = ReadFileBounded(options_.certificate_file, kMaxPem);
    if (!read.ok()) return FileError(read.status());
    certificate = *std::move(read);
    auto secret = ReadSecretFile(options_.key_file);
    if (!secret.ok()) return FileError(secret.status());
    key = Secret(*std::move(secret));
  }
  handle.curl = NewHttpsHandle({ca, certificate, key.view()});
  if (handle.curl == nullptr) return errors::VaultUnreachable(options_.address, "no memory");
  return handle;
}

void VaultConnection::Release(Handle handle) {
  MutexLock lock(mutex_);
  if (handle.generation == generation_ && idle_.size() < kMaxIdle) {
    idle_.push_back(std::move(handle.curl));
  }
}

absl::Status VaultConnection::FromCurl(CURLcode code, const char* detail) const {
  const std::string why =
      detail[0] == '\0' ? std::string(curl_easy_strerror(code)) : OneLine(detail);
  if (IsAboutCertificates(code)) return errors::VaultUntrusted(options_.address, why);
  return errors::VaultUnreachable(options_.address, why);
}

absl::StatusOr<VaultAnswer> VaultConnection::Call(const VaultRequest& request) {
  if (stopped_) {
    return errors::VaultUnreachable(options_.address, "the jobs service is being stopped");
  }
  ASSIGN_OR_RETURN(Handle handle, Acquire());
  auto answer = Perform(handle.curl.get(), request);
  if (answer.ok()) Release(std::move(handle));
  return answer;
}

absl::StatusOr<VaultAnswer> VaultConnection::Perform(CURL* c, const VaultRequest& request) const {
  const std::string call = VaultCallName(request);
  HeaderList headers;
  AddHeader(headers, "X-Vault-Request: true");
  AddHeader(headers, "Expect:");
  if (!options_.space.empty()) {
    AddHeader(headers, absl::StrCat("X-Vault-Namespace: ", options_.space));
  }
  if (!request.token.empty()) {
    AddHeader(headers, absl::StrCat("X-Vault-Token: ", ToAbsl(request.token)));
  }
  if (request.wrap_ttl > absl::ZeroDuration()) {
    AddHeader(headers,
              absl::StrCat("X-Vault-Wrap-TTL: ", absl::ToInt64Seconds(request.wrap_ttl), "s"));
  }
  std::string sent = request.body.is_null() ? "" : request.body.dump();
  if (!sent.empty()) AddHeader(headers, "Content-Type: application/json");
  Body body;
  body.text.reserve(kUsualAnswer);
  std::array<char, CURL_ERROR_SIZE> detail = {};
  const absl::Cleanup wipe = [&] {
    OPENSSL_cleanse(sent.data(), sent.size());
    OPENSSL_cleanse(body.text.data(), body.text.size());
    // The handle is used again, and must not refer to these.
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, nullptr);
    curl_easy_setopt(c, CURLOPT_POSTFIELDS, nullptr);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, nullptr);
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, nullptr);
  };
  const auto timeout = static_cast<long>(absl::ToInt64Milliseconds(options_.timeout));
  curl_easy_setopt(c, CURLOPT_URL, absl::StrCat(options_.address, "/v1/", request.path).c_str());
  curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, timeout);
  curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, timeout);
  curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(c, CURLOPT_MAXREDIRS, 1L);
  curl_easy_setopt(c, CURLOPT_POSTREDIR, static_cast<long>(CURL_REDIR_POST_ALL));
  curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR, "https");
  curl_easy_setopt(c, CURLOPT_ERRORBUFFER, detail.data());
  curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, Receive);
  curl_easy_setopt(c, CURLOPT_WRITEDATA, &body);
  if (request.method == "GET") {
    curl_easy_setopt(c, CURLOPT_HTTPGET, 1L);
  } else {
    curl_easy_setopt(c, CURLOPT_POST, 1L);
    curl_easy_setopt(c, CURLOPT_POSTFIELDS, sent.c_str());
    curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE, static_cast<long>(sent.size()));
  }
  const CURLcode result = curl_easy_perform(c);
  if (body.too_large) {
    return errors::VaultAnswerInvalid(call, absl::StrCat("it is larger than ", kMaxVaultAnswer));
  }
  if (result != CURLE_OK) return FromCurl(result, detail.data());
  long code = 0;
  curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &code);
  VaultAnswer answer(code, body.text.empty() ? Json::object() : ParseSecretJson(body.text));
  const bool is_known = answer.ok() || code == 400 || code == 403 || code == 404;
  if (code == 503 && answer.Errors().find("sealed") != std::string::npos) {
    return errors::VaultSealed(options_.address);
  }
  if (!is_known) return errors::VaultFailed(call, code, answer.Errors());
  if (!answer.At({}).is_object()) return errors::VaultAnswerInvalid(call, "it is no JSON object");
  return answer;
}

}  // namespace muster
