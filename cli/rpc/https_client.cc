#include "cli/rpc/https_client.h"

#include <openssl/ssl.h>

#include <array>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cli/exit_code.h"
#include "cli/rpc/retry_period.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"
#include "services/common/errors/cli.h"
#include "services/common/errors/rpc.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/identity.h"
#include "services/common/rpc/proxy.h"

namespace muster::cli {
namespace {

constexpr long kConnectSeconds = 10;
constexpr size_t kMaxAnswerSize = size_t{256} << 20;

size_t AppendBody(char* data, size_t size, size_t count, void* user) {
  std::string& body = static_cast<HttpsAnswer*>(user)->body;
  if (body.size() + size * count > kMaxAnswerSize) return 0;
  body.append(data, size * count);
  return size * count;
}

size_t StoreEtag(char* data, size_t size, size_t count, void* user) {
  constexpr absl::string_view kName = "etag:";
  const absl::string_view line(data, size * count);
  if (absl::StartsWithIgnoreCase(line, kName)) {
    static_cast<HttpsAnswer*>(user)->etag =
        std::string(absl::StripAsciiWhitespace(line.substr(kName.size())));
  }
  return size * count;
}

absl::StatusCode CodeOf(long http) {
  switch (http) {
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    case 429:
      return absl::StatusCode::kResourceExhausted;
    default:
      return http >= 500 ? absl::StatusCode::kUnavailable : absl::StatusCode::kInvalidArgument;
  }
}

// Returns the error that the server describes in its answer.
absl::Status ErrorFromAnswer(long http, const std::string& body) {
  const auto json = nlohmann::json::parse(body, nullptr, false);
  const auto field = [&](const char* name) -> std::string {
    const auto it = json.find(name);
    return it != json.end() && it->is_string() ? it->get<std::string>() : "";
  };
  const std::string reason = field("reason");
  const std::string message = field("message");
  return MakeError(CodeOf(http), reason.empty() ? "HTTP_REFUSED" : reason,
                   message.empty() ? absl::StrCat("HTTP status ", http) : message,
                   field("next_step"));
}

// Returns true if the request was not sent. A certificate that this client does not trust is
// another error; a few permanent faults of TLS cannot be distinguished from a lost connection.
bool IsConnectFailure(CURLcode code) {
  return code == CURLE_COULDNT_CONNECT || code == CURLE_SSL_CONNECT_ERROR;
}

// Returns true if the connection was lost during the request or the answer.
bool IsLostConnection(CURLcode code) {
  switch (code) {
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return true;
    default:
      return false;  // also a time-out
  }
}

// Returns the host and port of "https://host:port/path".
std::string AddressOf(const std::string& url) {
  const size_t begin = url.find("://");
  const size_t host = begin == std::string::npos ? 0 : begin + 3;
  return url.substr(host, url.find('/', host) - host);
}

// Returns the text in lower case unless it begins with an abbreviation.
std::string InLowerCase(std::string text) {
  if (text.size() > 1 && absl::ascii_islower(text[1])) {
    text.front() = absl::ascii_tolower(text.front());
  }
  return text;
}

// Returns true if a request failed at the proxy. curl's description names the host that it dials
// or, in later versions, that it dials "via" the proxy.
bool IsOfProxy(CURLcode code, const std::string& detail, const Proxy& proxy) {
  if (code == CURLE_COULDNT_RESOLVE_PROXY || absl::StrContains(detail, "CONNECT ")) return true;
  return code == CURLE_COULDNT_CONNECT &&
         (absl::StrContains(detail, absl::StrCat(" ", proxy.host, " port ", proxy.port, " ")) ||
          absl::StrContains(detail, absl::StrCat(" via ", proxy.host, " ")));
}

// Returns the error of a request without an answer. `detail` is curl's description.
absl::Status ErrorOf(CURL* curl, CURLcode code, const std::string& detail, const std::string& url) {
  if (code == CURLE_PEER_FAILED_VERIFICATION) {
    if (absl::StrContains(detail,
                          X509_verify_cert_error_string(X509_V_ERR_APPLICATION_VERIFICATION))) {
      return errors::ServerCertificateRefused(AddressOf(url), "it is not that of a gateway");
    }
    // "SSL certificate problem: unable to get local issuer certificate"
    return errors::ServerCertificateRefused(
        AddressOf(url), ToStd(absl::StripPrefix(detail, "SSL certificate problem: ")));
  }
  long fault = 0;
  curl_easy_getinfo(curl, CURLINFO_OS_ERRNO, &fault);
  const bool unconnected = code == CURLE_COULDNT_CONNECT && fault != 0;
  const std::string why =
      unconnected ? std::generic_category().message(static_cast<int>(fault)) : InLowerCase(detail);
  if (const auto proxy = CurlProxy(); proxy && IsOfProxy(code, detail, *proxy)) {
    return errors::ProxyFailed(
        absl::StrCat("cannot connect through the proxy ", proxy->Address(), ": ", why),
        proxy->variable);
  }
  // curl names functions of OpenSSL and numbers of HTTP/2 streams for these.
  if (IsLostConnection(code) && code != CURLE_HTTP2) {  // which is also another protocol
    return errors::GatewayUnreachable(
        absl::StrCat(AddressOf(url), " closed the connection before the end of its answer"));
  }
  if (code == CURLE_SSL_CONNECT_ERROR && absl::StrContains(detail, "SSL_ERROR_SYSCALL")) {
    return errors::GatewayUnreachable(
        absl::StrCat(AddressOf(url), " closed the connection during the TLS handshake"));
  }
  // "OpenSSL/3.0.19: error:0A000438:SSL routines::tlsv1 alert internal error"
  if (const size_t text = detail.rfind("SSL routines::");
      code == CURLE_SSL_CONNECT_ERROR && text != std::string::npos) {
    return errors::GatewayUnreachable(
        absl::StrCat("the TLS handshake with ", AddressOf(url),
                     " failed: ", detail.substr(detail.find("::", text) + 2)));
  }
  if (!unconnected) return errors::GatewayUnreachable(why);
  return errors::GatewayUnreachable(absl::StrCat("cannot connect to ", AddressOf(url), ": ", why));
}

// The wanted identity, in the data of a handle's TLS contexts.
int IdentityIndex() {
  static const int index = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

bool Has(X509* certificate, const HttpsClient::GatewayOf& wanted) {
  X509_up_ref(certificate);
  const auto uri = Certificate::Adopt(certificate).Uri();
  if (!uri.ok()) return wanted.or_none;
  const auto identity = ParseIdentity(*uri, wanted.fleet);
  if (!identity.ok()) return false;
  const auto* service = std::get_if<ServiceIdentity>(&identity->name);
  return service != nullptr && service->role == ServiceRole::kGateway;
}

// Is called for each certificate of a chain, the server's last.
int VerifyGateway(int valid, X509_STORE_CTX* chain) {
  if (valid != 1 || X509_STORE_CTX_get_error_depth(chain) > 0) return valid;
  const auto* ssl =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(chain, SSL_get_ex_data_X509_STORE_CTX_idx()));
  const auto* wanted = static_cast<const HttpsClient::GatewayOf*>(
      SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), IdentityIndex()));
  if (Has(X509_STORE_CTX_get_current_cert(chain), *wanted)) return 1;
  X509_STORE_CTX_set_error(chain, X509_V_ERR_APPLICATION_VERIFICATION);
  return 0;
}

CURLcode SetGatewayVerifier(CURL*, void* context, void* wanted) {
  auto* tls = static_cast<SSL_CTX*>(context);
  SSL_CTX_set_ex_data(tls, IdentityIndex(), wanted);
  SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, VerifyGateway);
  return CURLE_OK;
}

}  // namespace

HttpsClient::HttpsClient(std::string_view ca_pem, std::string_view certificate_pem,
                         std::string_view key_pem, std::optional<GatewayOf> identity)
    : identity_(std::move(identity)), curl_(NewHttpsHandle({ca_pem, certificate_pem, key_pem})) {
  if (identity_) {
    curl_easy_setopt(curl_.get(), CURLOPT_SSL_CTX_FUNCTION, SetGatewayVerifier);
    curl_easy_setopt(curl_.get(), CURLOPT_SSL_CTX_DATA, const_cast<GatewayOf*>(&*identity_));
  }
  curl_easy_setopt(curl_.get(), CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(curl_.get(), CURLOPT_TIMEOUT,
                   static_cast<long>(absl::ToInt64Seconds(kCallLimit)));
  curl_easy_setopt(curl_.get(), CURLOPT_ACCEPT_ENCODING, "");
  curl_easy_setopt(curl_.get(), CURLOPT_WRITEFUNCTION, AppendBody);
  curl_easy_setopt(curl_.get(), CURLOPT_HEADERFUNCTION, StoreEtag);
}

absl::StatusOr<HttpsAnswer> HttpsClient::Get(const std::string& url, const std::string& etag) {
  curl_easy_setopt(curl_.get(), CURLOPT_HTTPGET, 1L);
  return Perform(url, etag.empty() ? "" : absl::StrCat("If-None-Match: ", etag), true);
}

absl::StatusOr<HttpsAnswer> HttpsClient::Post(const std::string& url) {
  curl_easy_setopt(curl_.get(), CURLOPT_POSTFIELDS, "{}");
  return Perform(url, "Content-Type: application/json", false);
}

absl::StatusOr<HttpsAnswer> HttpsClient::Perform(const std::string& url, const std::string& header,
                                                 bool idempotent) {
  HeaderList headers;
  if (!header.empty()) AddHeader(headers, header);
  curl_easy_setopt(curl_.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl_.get(), CURLOPT_HTTPHEADER, headers.get());
  const RetryPeriod period;
  while (true) {
    bool repeatable = false;
    auto answer = PerformOnce(url, idempotent, &repeatable);
    if (repeatable && period.Pause()) continue;
    curl_easy_setopt(curl_.get(), CURLOPT_HTTPHEADER, nullptr);
    return answer;
  }
}

absl::StatusOr<HttpsAnswer> HttpsClient::PerformOnce(const std::string& url, bool idempotent,
                                                     bool* repeatable) {
  HttpsAnswer answer;
  std::array<char, CURL_ERROR_SIZE> detail = {};
  curl_easy_setopt(curl_.get(), CURLOPT_WRITEDATA, &answer);
  curl_easy_setopt(curl_.get(), CURLOPT_HEADERDATA, &answer);
  curl_easy_setopt(curl_.get(), CURLOPT_ERRORBUFFER, detail.data());
  const CURLcode code = curl_easy_perform(curl_.get());
  curl_easy_setopt(curl_.get(), CURLOPT_ERRORBUFFER, nullptr);
  if (code != CURLE_OK) {
    *repeatable = IsConnectFailure(code) || (idempotent && IsLostConnection(code));
    const std::string text = detail[0] != '\0' ? detail.data() : curl_easy_strerror(code);
    return FromService(ErrorOf(curl_.get(), code, text, url), url);
  }
  long http = 0;
  curl_easy_getinfo(curl_.get(), CURLINFO_RESPONSE_CODE, &http);
  answer.unchanged = http == 304;
  if (http == 200 || http == 304) return answer;
  const absl::Status refused = ErrorFromAnswer(http, answer.body);
  *repeatable = idempotent && absl::IsUnavailable(refused);
  return FromService(refused, url);
}

}  // namespace muster::cli
