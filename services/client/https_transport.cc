#include "services/client/https_transport.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "services/client/errors.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"

namespace muster::client {
namespace {

constexpr long kConnectSeconds = 15;
constexpr long kProgressSeconds = 10;
// A gateway holds a PUT for a minute while the aggregator is away, and needs time to commit.
constexpr absl::Duration kStallLimit = absl::Minutes(5);
constexpr size_t kMostAnswer = 4096;  // bytes of an answer's text that are kept
constexpr long kSendBuffer = 512 * 1024;

struct FreeCurl {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
};
using Curl = std::unique_ptr<CURL, FreeCurl>;

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, FreeList>;

// libcurl's own set-up, once per process; it needs no partner at the end.
void SetUpOnce() {
  static const CURLcode done = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)done;
}

void AddHeader(HeaderList& list, const std::string& line) {
  // It returns the list's first entry: a new pointer only for the first line.
  curl_slist* first = curl_slist_append(list.get(), line.c_str());
  if (!list) list.reset(first);
}

// "https://host:port" without whatever follows.
std::string BaseOf(std::string_view url) {
  const size_t host = url.find("://");
  const size_t path = url.find('/', host == std::string_view::npos ? 0 : host + 3);
  return std::string(url.substr(0, path));
}

std::string Escape(CURL* curl, std::string_view segment) {
  char* escaped = curl_easy_escape(curl, segment.data(), static_cast<int>(segment.size()));
  std::string text = escaped == nullptr ? std::string() : std::string(escaped);
  curl_free(escaped);
  return text;
}

// One request under way: where its body comes from, and what came back.
struct Exchange {
  OutgoingResult* result = nullptr;
  int64_t offset = 0;
  absl::Status source;  // why the body could not be read
  std::string answer;
  std::optional<absl::Duration> retry_after;
  std::stop_token stop;
  curl_off_t moved = -1;
  absl::Time moved_at = absl::Now();
};

size_t GiveBody(char* buffer, size_t size, size_t count, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  OutgoingResult& result = *exchange.result;
  const int64_t left = result.file->size() - exchange.offset;
  const auto wanted =
      static_cast<size_t>(std::min<int64_t>(left, static_cast<int64_t>(size * count)));
  if (wanted > 0) exchange.source = result.file->ReadAt(exchange.offset, std::span(buffer, wanted));
  // Before the last piece goes: what is cut here the listener does not take for complete.
  if (exchange.source.ok()) exchange.source = result.file->CheckUnchanged();
  if (!exchange.source.ok()) return CURL_READFUNC_ABORT;
  result.digest.Add(exchange.offset, {buffer, wanted});
  exchange.offset += static_cast<int64_t>(wanted);
  return wanted;
}

size_t TakeAnswer(char* data, size_t size, size_t count, void* user) {
  std::string& answer = static_cast<Exchange*>(user)->answer;
  answer.append(data, std::min(size * count, kMostAnswer - answer.size()));
  return size * count;
}

size_t TakeHeader(char* data, size_t size, size_t count, void* user) {
  const std::string line = absl::AsciiStrToLower(absl::string_view(data, size * count));
  constexpr std::string_view kName = "retry-after:";
  int seconds = 0;
  if (line.starts_with(kName) &&
      absl::SimpleAtoi(absl::StripAsciiWhitespace(line.substr(kName.size())), &seconds)) {
    static_cast<Exchange*>(user)->retry_after = absl::Seconds(seconds);
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

void SetBlob(CURL* curl, CURLoption option, const std::string& pem) {
  curl_blob blob{const_cast<char*>(pem.data()), pem.size(), CURL_BLOB_COPY};
  curl_easy_setopt(curl, option, &blob);
}

Curl NewRequest(const HttpsOptions& options, const std::string& url, Exchange& exchange) {
  SetUpOnce();
  Curl curl(curl_easy_init());
  if (!curl) return curl;
  CURL* c = curl.get();
  curl_easy_setopt(c, CURLOPT_URL, url.c_str());
  curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "https");
  curl_easy_setopt(c, CURLOPT_PROXY, "");  // what the environment names is not asked
  curl_easy_setopt(c, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  SetBlob(c, CURLOPT_CAINFO_BLOB, options.ca_pem);
  curl_easy_setopt(c, CURLOPT_SSLCERTTYPE, "PEM");
  SetBlob(c, CURLOPT_SSLCERT_BLOB, options.certificate_pem);
  curl_easy_setopt(c, CURLOPT_SSLKEYTYPE, "PEM");
  SetBlob(c, CURLOPT_SSLKEY_BLOB, options.key_pem);
  curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, TakeAnswer);
  curl_easy_setopt(c, CURLOPT_WRITEDATA, &exchange);
  curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, TakeHeader);
  curl_easy_setopt(c, CURLOPT_HEADERDATA, &exchange);
  curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, Watch);
  curl_easy_setopt(c, CURLOPT_XFERINFODATA, &exchange);
  return curl;
}

absl::Status FromHttp(long code, const Exchange& exchange, const std::string& url) {
  if (code == 200) return absl::OkStatus();
  const std::string said(absl::StripAsciiWhitespace(exchange.answer));
  const std::string text = absl::StrCat(url, " answered ", code, said.empty() ? "" : ": ", said);
  if (code >= 500) {
    absl::Status status = ConnectionError(url, absl::StrCat("answered ", code, " ", said));
    return exchange.retry_after ? WithRetryAfter(status, *exchange.retry_after) : status;
  }
  switch (code) {
    case 409:
      return MakeError(absl::StatusCode::kAlreadyExists, "RESULT_CONFLICT", text,
                       "Another result of this pair is committed; it stays.");
    case 410:
      return MakeError(absl::StatusCode::kFailedPrecondition, "RUN_SEALED", text,
                       "Deliver to a newer run.");
    case 401:
    case 403:
      return MakeError(absl::StatusCode::kPermissionDenied, "NOT_YOURS", text,
                       "Check plugin and node against the run's plan.");
    default:
      return MakeError(absl::StatusCode::kInvalidArgument, "HTTP_REFUSED", text,
                       "Check that aggregator_url is the run's listener.");
  }
}

// Faults of the other side's certificate, or of ours, look like lost connections, and may be: the
// listener of a run opens a moment after the run begins.
absl::Status FromCurl(CURLcode code, const Exchange& exchange, const std::string& url) {
  if (!exchange.source.ok()) return exchange.source;
  if (exchange.stop.stop_requested()) return InterruptedError();
  if (code == CURLE_ABORTED_BY_CALLBACK) return StalledError(exchange.offset);
  return ConnectionError(url, curl_easy_strerror(code));
}

class HttpsTransport final : public ResultTransport {
 public:
  explicit HttpsTransport(HttpsOptions options) : options_(std::move(options)) {}

  TryOutcome Try(OutgoingResult& result, const std::stop_token& stop) override {
    TryOutcome outcome;
    outcome.opened = true;
    Exchange exchange;
    exchange.result = &result;
    exchange.stop = stop;
    Curl curl = NewRequest(options_, "", exchange);
    if (!curl) {
      outcome.receipt = absl::ResourceExhaustedError("no memory for a request");
      return outcome;
    }
    const std::string url = UrlOf(curl.get(), result.info);
    curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
    const HeaderList headers = Headers(result.info);
    curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
    curl_easy_setopt(curl.get(), CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(curl.get(), CURLOPT_UPLOAD_BUFFERSIZE, kSendBuffer);
    curl_easy_setopt(curl.get(), CURLOPT_READFUNCTION, GiveBody);
    curl_easy_setopt(curl.get(), CURLOPT_READDATA, &exchange);
    const CURLcode code = curl_easy_perform(curl.get());
    long answer = 0;
    curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &answer);
    // An early refusal may cut the sending short: the answer counts, not the broken pipe.
    const bool answered = code == CURLE_OK || (answer >= 400 && exchange.source.ok());
    const absl::Status status =
        answered ? FromHttp(answer, exchange, url) : FromCurl(code, exchange, url);
    if (status.ok()) {
      outcome.receipt = CommitReceipt{0, result.file->size(), result.digest.Sha256()};
    } else {
      outcome.receipt = status;
    }
    return outcome;
  }

 private:
  std::string UrlOf(CURL* curl, const ResultInfo& info) const {
    const std::string plugin = Escape(curl, info.plugin);
    if (info.node == "global") {
      return absl::StrCat(BaseOf(options_.url), "/api/v1/results/global/", plugin);
    }
    return absl::StrCat(BaseOf(options_.url), "/api/v1/results/by-node/", Escape(curl, info.node),
                        "/", plugin);
  }

  // Names are data, but not in the middle of a header.
  static bool FitsHeader(const std::string& text) {
    return !text.empty() &&
           std::ranges::none_of(text, [](char c) { return absl::ascii_iscntrl(c); });
  }

  static HeaderList Headers(const ResultInfo& info) {
    HeaderList headers;
    // Of unknown length, as old sidecars send: and no waiting for "100 Continue".
    AddHeader(headers, "Transfer-Encoding: chunked");
    AddHeader(headers, "Expect:");
    AddHeader(headers, FitsHeader(info.media_type) ? "Content-Type: " + info.media_type
                                                   : std::string("Content-Type:"));
    if (FitsHeader(info.file_name) && !info.is_error) {
      AddHeader(headers, absl::StrCat("Content-Disposition: attachment;filename=", info.file_name));
    }
    return headers;
  }

  const HttpsOptions options_;
};

}  // namespace

std::unique_ptr<ResultTransport> MakeHttpsTransport(HttpsOptions options) {
  return std::make_unique<HttpsTransport>(std::move(options));
}

absl::Status PostProgress(const HttpsOptions& options, std::string_view plugin,
                          std::string_view node, const std::string& json) {
  Exchange exchange;
  Curl curl = NewRequest(options, "", exchange);
  if (!curl) return absl::ResourceExhaustedError("no memory for a request");
  const std::string where = node == "global" ? "global" : "by-node/" + Escape(curl.get(), node);
  const std::string url = absl::StrCat(BaseOf(options.url), "/api/v1/progress/", where, "/",
                                       Escape(curl.get(), plugin));
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT, kProgressSeconds);
  curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(json.size()));
  curl_easy_setopt(curl.get(), CURLOPT_COPYPOSTFIELDS, json.c_str());
  HeaderList headers;
  AddHeader(headers, "Content-Type: application/json");
  curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
  const CURLcode code = curl_easy_perform(curl.get());
  if (code != CURLE_OK) return FromCurl(code, exchange, url);
  long answer = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &answer);
  return FromHttp(answer, exchange, url);
}

}  // namespace muster::client
