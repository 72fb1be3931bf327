#include "cli/rpc/https_client.h"

#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/exit_code.h"
#include "services/common/base/error.h"
#include "services/common/errors/cli.h"

namespace muster::cli {
namespace {

constexpr long kConnectSeconds = 10;
constexpr long kTotalSeconds = 20;
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

}  // namespace

HttpsClient::HttpsClient(std::string_view ca_pem, std::string_view certificate_pem,
                         std::string_view key_pem)
    : curl_(NewHttpsHandle({ca_pem, certificate_pem, key_pem})) {
  curl_easy_setopt(curl_.get(), CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(curl_.get(), CURLOPT_TIMEOUT, kTotalSeconds);
  curl_easy_setopt(curl_.get(), CURLOPT_ACCEPT_ENCODING, "");
  curl_easy_setopt(curl_.get(), CURLOPT_WRITEFUNCTION, AppendBody);
  curl_easy_setopt(curl_.get(), CURLOPT_HEADERFUNCTION, StoreEtag);
}

absl::StatusOr<HttpsAnswer> HttpsClient::Get(const std::string& url, const std::string& etag) {
  curl_easy_setopt(curl_.get(), CURLOPT_HTTPGET, 1L);
  return Perform(url, etag.empty() ? "" : absl::StrCat("If-None-Match: ", etag));
}

absl::StatusOr<HttpsAnswer> HttpsClient::Post(const std::string& url) {
  curl_easy_setopt(curl_.get(), CURLOPT_POSTFIELDS, "{}");
  return Perform(url, "Content-Type: application/json");
}

absl::StatusOr<HttpsAnswer> HttpsClient::Perform(const std::string& url,
                                                 const std::string& header) {
  HeaderList headers;
  if (!header.empty()) AddHeader(headers, header);
  HttpsAnswer answer;
  curl_easy_setopt(curl_.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl_.get(), CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl_.get(), CURLOPT_WRITEDATA, &answer);
  curl_easy_setopt(curl_.get(), CURLOPT_HEADERDATA, &answer);
  const CURLcode code = curl_easy_perform(curl_.get());
  curl_easy_setopt(curl_.get(), CURLOPT_HTTPHEADER, nullptr);
  if (code != CURLE_OK) {
    std::string cause = curl_easy_strerror(code);
    if (!cause.empty()) cause.front() = absl::ascii_tolower(cause.front());
    return FromService(errors::GatewayUnreachable(cause), url);
  }
  long http = 0;
  curl_easy_getinfo(curl_.get(), CURLINFO_RESPONSE_CODE, &http);
  answer.unchanged = http == 304;
  if (http != 200 && http != 304) return FromService(ErrorFromAnswer(http, answer.body), url);
  return answer;
}

}  // namespace muster::cli
