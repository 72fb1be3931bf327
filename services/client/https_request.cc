#include "services/client/https_request.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"
#include "services/common/errors/client.h"

namespace muster::client {
namespace {

constexpr long kConnectSeconds = 15;
// A gateway holds a PUT for a minute while the aggregator is unavailable, and needs time to commit.
constexpr absl::Duration kStallLimit = absl::Minutes(5);
constexpr size_t kMostAnswer = 4096;  // the limit of stored response text

// "https://host:port" without whatever follows.
std::string BaseOf(std::string_view url) {
  const size_t host = url.find("://");
  const size_t path = url.find('/', host == std::string_view::npos ? 0 : host + 3);
  return std::string(url.substr(0, path));
}

size_t TakeAnswer(char* data, size_t size, size_t count, void* user) {
  std::string& answer = static_cast<Exchange*>(user)->answer;
  answer.append(data, std::min(size * count, kMostAnswer - answer.size()));
  return size * count;
}

size_t TakeHeader(char* data, size_t size, size_t count, void* user) {
  const std::string line = absl::AsciiStrToLower(absl::string_view(data, size * count));
  auto& exchange = *static_cast<Exchange*>(user);
  constexpr std::string_view kRetryAfter = "retry-after:";
  constexpr std::string_view kDate = "date:";
  int seconds = 0;
  if (line.starts_with(kRetryAfter) &&
      absl::SimpleAtoi(absl::StripAsciiWhitespace(line.substr(kRetryAfter.size())), &seconds)) {
    exchange.retry_after = absl::Seconds(seconds);
  } else if (line.starts_with(kDate)) {
    const time_t date = curl_getdate(line.c_str() + kDate.size(), nullptr);
    if (date >= 0) exchange.date = absl::FromTimeT(date);
  }
  return size * count;
}

int Watch(void* user, curl_off_t, curl_off_t received, curl_off_t, curl_off_t sent) {
  auto& exchange = *static_cast<Exchange*>(user);
  if (sent + received != exchange.moved) {
    exchange.moved = sent + received;
    exchange.moved_at = absl::Now();
  }
  return exchange.stop.stop_requested() || absl::Now() - exchange.moved_at > kStallLimit ? 1 : 0;
}

}  // namespace

Curl NewRequest(const HttpsOptions& options, Exchange& exchange) {
  Curl curl = NewHttpsHandle({options.ca_pem, options.certificate_pem, options.key_pem});
  if (!curl) return curl;
  CURL* c = curl.get();
  curl_easy_setopt(c, CURLOPT_PROXY, "");  // a proxy of the environment is not used
  curl_easy_setopt(c, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, TakeAnswer);
  curl_easy_setopt(c, CURLOPT_WRITEDATA, &exchange);
  curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, TakeHeader);
  curl_easy_setopt(c, CURLOPT_HEADERDATA, &exchange);
  curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, Watch);
  curl_easy_setopt(c, CURLOPT_XFERINFODATA, &exchange);
  return curl;
}

std::string UrlOf(CURL* curl, const HttpsOptions& options, std::string_view kind,
                  std::string_view plugin, std::string_view node) {
  const std::string where = node == "global" ? "global" : "by-node/" + UrlEscaped(node);
  return absl::StrCat(BaseOf(options.url), "/api/v1/", ToAbsl(kind), "/", where, "/",
                      UrlEscaped(plugin));
}

absl::StatusOr<long> Perform(CURL* curl, const Exchange& exchange, const std::string& url) {
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  const CURLcode code = curl_easy_perform(curl);
  if (code != CURLE_OK) return FromCurl(code, exchange, url);
  long answer = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer);
  return answer;
}

absl::Status FromHttp(long code, const Exchange& exchange, const std::string& url) {
  if (code == 200) return absl::OkStatus();
  const std::string said(absl::StripAsciiWhitespace(exchange.answer));
  const std::string text = absl::StrCat(url, " answered ", code, said.empty() ? "" : ": ", said);
  if (code >= 500) {
    absl::Status status = errors::ConnectionFailed(url, absl::StrCat("answered ", code, " ", said));
    return exchange.retry_after ? WithRetryAfter(status, *exchange.retry_after) : status;
  }
  switch (code) {
    case 409:
      return errors::ConflictAtListener(text);
    case 410:
      return errors::SealedAtListener(text);
    case 413:
      return errors::TooLargeForListener(text);
    case 401:
    case 403:
      return errors::NotYoursAtListener(text);
    default:
      return errors::RefusedByListener(text);
  }
}

// A fault of a certificate looks like a lost connection, and may be temporary: the listener of a
// run opens a moment after the run begins.
absl::Status FromCurl(CURLcode code, const Exchange& exchange, const std::string& url) {
  if (exchange.stop.stop_requested()) return errors::Interrupted();
  if (code == CURLE_ABORTED_BY_CALLBACK) return errors::NoUploadProgress(exchange.moved);
  return errors::ConnectionFailed(url, curl_easy_strerror(code));
}

}  // namespace muster::client
