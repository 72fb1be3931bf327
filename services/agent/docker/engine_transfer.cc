#include "services/agent/docker/engine_transfer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "services/common/base/utf8.h"
#include "services/common/errors/docker.h"

namespace muster {
namespace {

constexpr long kConnectSeconds = 5;
constexpr size_t kMaxErrorBody = size_t{16} << 10;
constexpr size_t kMaxErrorText = size_t{1} << 10;
constexpr size_t kMaxBody = size_t{16} << 20;

std::string CallName(const EngineRequest& request) {
  return absl::StrCat(request.method, " ", request.path.substr(0, request.path.find('?')));
}

}  // namespace

EngineTransfer::EngineTransfer(std::string socket, EngineRequest request, BodySink sink)
    : socket_(std::move(socket)),
      request_(std::move(request)),
      sink_(std::move(sink)),
      curl_(NewUnixSocketHandle(socket_)) {
  CURL* const c = curl();
  if (c == nullptr) return;
  curl_easy_setopt(c, CURLOPT_URL, absl::StrCat("http://docker", request_.path).c_str());
  curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, request_.method.c_str());
  for (const std::string& header : request_.headers) AddHeader(headers_, header);
  if (request_.method == "POST") SetBody();
  if (headers_ != nullptr) curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers_.get());
  curl_easy_setopt(c, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(
      c, CURLOPT_WRITEFUNCTION, +[](char* data, size_t, size_t size, void* self) {
        return static_cast<EngineTransfer*>(self)->Receive({data, size});
      });
}

void EngineTransfer::SetBody() {
  CURL* const c = curl();
  curl_easy_setopt(c, CURLOPT_POST, 1L);
  AddHeader(headers_, "Expect:");  // no wait for 100 Continue
  if (!request_.tar) {
    AddHeader(headers_, "Content-Type: application/json");
    curl_easy_setopt(c, CURLOPT_POSTFIELDS, request_.body.c_str());
    curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
    return;
  }
  AddHeader(headers_, "Content-Type: application/x-tar");
  AddHeader(headers_, "Transfer-Encoding: chunked");
  curl_easy_setopt(c, CURLOPT_READDATA, this);
  curl_easy_setopt(
      c, CURLOPT_READFUNCTION, +[](char* buffer, size_t, size_t size, void* self) {
        return static_cast<EngineTransfer*>(self)->Send({buffer, size});
      });
}

size_t EngineTransfer::Send(std::span<char> buffer) {
  const auto sent = request_.tar(buffer);
  if (sent.ok()) return *sent;
  sink_error_ = sent.status();
  return CURL_READFUNC_ABORT;
}

long EngineTransfer::code() const {
  long code = 0;
  if (curl() != nullptr) curl_easy_getinfo(curl(), CURLINFO_RESPONSE_CODE, &code);
  return code;
}

size_t EngineTransfer::Receive(std::string_view piece) {
  if (code() >= 400) {
    error_body_.append(
        piece.substr(0, kMaxErrorBody - std::min(kMaxErrorBody, error_body_.size())));
    return piece.size();
  }
  sink_error_ = sink_(piece);
  return sink_error_.ok() ? piece.size() : 0;
}

std::string EngineTransfer::ErrorMessage() const {
  const auto json = nlohmann::json::parse(error_body_, nullptr, /*allow_exceptions=*/false);
  const auto message = json.is_object() ? json.find("message") : json.end();
  const bool found = json.is_object() && message != json.end() && message->is_string();
  return std::string(CutUtf8(found ? message->get<std::string>() : error_body_, kMaxErrorText));
}

absl::Status EngineTransfer::ResultOf(CURLcode result) const {
  if (!sink_error_.ok()) return sink_error_;
  if (result != CURLE_OK) return errors::DockerUnreachable(socket_, curl_easy_strerror(result));
  if (code() < 400) return absl::OkStatus();
  return errors::DockerFailed(CallName(request_), code(), ErrorMessage());
}

absl::Status EngineTransfer::Perform(absl::Duration limit, const std::function<bool()>& stopped) {
  if (curl() == nullptr) return errors::DockerUnreachable(socket_, "no memory");
  if (stopped) {
    curl_easy_setopt(curl(), CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl(), CURLOPT_XFERINFODATA, &stopped);
    curl_easy_setopt(
        curl(), CURLOPT_XFERINFOFUNCTION,
        +[](void* f, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
          return (*static_cast<const std::function<bool()>*>(f))() ? 1 : 0;
        });
  }
  curl_easy_setopt(
      curl(), CURLOPT_TIMEOUT_MS,
      static_cast<long>(std::max<int64_t>(1, absl::ToInt64Milliseconds(limit))));  // 0: no limit
  return ResultOf(curl_easy_perform(curl()));
}

absl::StatusOr<std::string> CallEngine(const std::string& socket, EngineRequest request,
                                       absl::Duration limit, long* code) {
  std::string body;
  const std::string call = CallName(request);
  EngineTransfer transfer(socket, std::move(request), [&](std::string_view piece) {
    if (body.size() + piece.size() > kMaxBody) {
      return errors::DockerAnswerInvalid(call, "it is larger than 16 MiB");
    }
    body.append(piece);
    return absl::OkStatus();
  });
  const absl::Status status = transfer.Perform(limit);
  *code = transfer.code();
  if (!status.ok()) return status;
  return body;
}

}  // namespace muster
