#include "services/client/https_transport.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "services/client/https_request.h"
#include "services/common/base/status_macros.h"

namespace muster::client {
namespace {

constexpr long kProgressSeconds = 10;
constexpr long kSendBuffer = 512 * 1024;

// The source of a request's body.
struct Sending {
  OutgoingResult* result = nullptr;
  int64_t offset = 0;
  absl::Status source;  // the error of the source
};

size_t GiveBody(char* buffer, size_t size, size_t count, void* user) {
  auto& sending = *static_cast<Sending*>(user);
  OutgoingResult& result = *sending.result;
  const int64_t left = result.file->size() - sending.offset;
  const auto wanted =
      static_cast<size_t>(std::min<int64_t>(left, static_cast<int64_t>(size * count)));
  if (wanted > 0) sending.source = result.file->ReadAt(sending.offset, std::span(buffer, wanted));
  // Checked before the last bytes are sent: the listener does not accept an incomplete body.
  if (sending.source.ok()) sending.source = result.file->CheckUnchanged();
  if (!sending.source.ok()) return CURL_READFUNC_ABORT;
  result.digest.Add(sending.offset, {buffer, wanted});
  sending.offset += static_cast<int64_t>(wanted);
  return wanted;
}

class HttpsTransport final : public ResultTransport {
 public:
  explicit HttpsTransport(HttpsOptions options) : options_(std::move(options)) {}

  TryOutcome Try(OutgoingResult& result, const std::stop_token& stop) override {
    TryOutcome outcome;
    outcome.opened = true;
    Exchange exchange;
    exchange.stop = stop;
    Sending sending{&result};
    Curl curl = NewRequest(options_, exchange);
    if (!curl) {
      outcome.receipt = absl::ResourceExhaustedError("no memory for a request");
      return outcome;
    }
    const std::string url =
        UrlOf(curl.get(), options_, "results", result.info.plugin, result.info.node);
    curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
    const HeaderList headers = Headers(result.info);
    curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
    curl_easy_setopt(curl.get(), CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(curl.get(), CURLOPT_UPLOAD_BUFFERSIZE, kSendBuffer);
    curl_easy_setopt(curl.get(), CURLOPT_READFUNCTION, GiveBody);
    curl_easy_setopt(curl.get(), CURLOPT_READDATA, &sending);
    const CURLcode code = curl_easy_perform(curl.get());
    long answer = 0;
    curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &answer);
    // An early refusal may interrupt the body: the response counts, not the broken pipe.
    const bool answered = code == CURLE_OK || (answer >= 400 && sending.source.ok());
    absl::Status status =
        answered ? FromHttp(answer, exchange, url) : FromCurl(code, exchange, url);
    if (!answered && !sending.source.ok()) status = sending.source;
    if (status.ok()) {
      outcome.receipt = CommitReceipt{0, result.file->size(), result.digest.Sha256()};
    } else {
      outcome.receipt = status;
    }
    return outcome;
  }

 private:
  // Names may contain any characters, but not within a header.
  static bool FitsHeader(const std::string& text) {
    return !text.empty() &&
           std::ranges::none_of(text, [](char c) { return absl::ascii_iscntrl(c); });
  }

  static HeaderList Headers(const ResultInfo& info) {
    HeaderList headers;
    // Has no length, as legacy sidecars send it, without waiting for "100 Continue".
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

absl::StatusOr<RelayedAnswer> RelayProgress(const HttpsOptions& options, std::string_view plugin,
                                            std::string_view node, const std::string& body) {
  Exchange exchange;
  Curl curl = NewRequest(options, exchange);
  if (!curl) return absl::ResourceExhaustedError("no memory for a request");
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT, kProgressSeconds);
  curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, body.c_str());
  HeaderList headers;
  AddHeader(headers, "Content-Type: application/json");
  AddHeader(headers, "Expect:");
  curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
  const std::string url = UrlOf(curl.get(), options, "progress", plugin, node);
  ASSIGN_OR_RETURN(const auto code, Perform(curl.get(), exchange, url));
  return RelayedAnswer{static_cast<int>(code), exchange.answer, FromHttp(code, exchange, url)};
}

}  // namespace muster::client
