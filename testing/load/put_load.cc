// Sends bodies by HTTPS PUT with a client certificate, as curl does: the load for nginx in
// testing/benchmark, and for Muster's listeners for legacy clients. Connections are reused.
#include <curl/curl.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "testing/load/measurement.h"

ABSL_FLAG(std::string, url, "", "where to PUT; %d becomes the number of the body");
ABSL_FLAG(std::string, ca, "", "PEM file with whom to trust");
ABSL_FLAG(std::string, cert, "", "PEM file with the client's certificate");
ABSL_FLAG(std::string, key, "", "PEM file with the client's key");
ABSL_FLAG(int64_t, size, 4096, "bytes of each body");
ABSL_FLAG(int64_t, count, 1, "how many bodies");
ABSL_FLAG(int, senders, 1, "how many connections");
ABSL_FLAG(bool, text, false, "send lines of a log");
ABSL_FLAG(bool, chunked, false, "send no length, as old sidecars do");

namespace muster::load {
namespace {

constexpr size_t kPattern = 64 << 20;

struct FreeHandle {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
using Handle = std::unique_ptr<CURL, FreeHandle>;

// The position of a transfer in a body that repeats the pattern.
struct Body {
  const std::string& pattern;
  int64_t left;
  size_t at = 0;
};

size_t Read(char* buffer, size_t size, size_t items, void* user) {
  Body& body = *static_cast<Body*>(user);
  const size_t n =
      std::min({size * items, static_cast<size_t>(body.left), body.pattern.size() - body.at});
  std::memcpy(buffer, body.pattern.data() + body.at, n);
  body.left -= n;
  body.at = (body.at + n) % body.pattern.size();
  return n;
}

size_t Discard(char*, size_t size, size_t items, void*) { return size * items; }

Handle MakeHandle(curl_slist* headers) {
  Handle handle(curl_easy_init());
  curl_easy_setopt(handle.get(), CURLOPT_CAINFO, absl::GetFlag(FLAGS_ca).c_str());
  curl_easy_setopt(handle.get(), CURLOPT_SSLCERT, absl::GetFlag(FLAGS_cert).c_str());
  curl_easy_setopt(handle.get(), CURLOPT_SSLKEY, absl::GetFlag(FLAGS_key).c_str());
  curl_easy_setopt(handle.get(), CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_3);
  curl_easy_setopt(handle.get(), CURLOPT_SSL_ENABLE_ALPN, 0L);
  curl_easy_setopt(handle.get(), CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  curl_easy_setopt(handle.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle.get(), CURLOPT_UPLOAD, 1L);
  curl_easy_setopt(handle.get(), CURLOPT_UPLOAD_BUFFERSIZE, 2L << 20);
  curl_easy_setopt(handle.get(), CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(handle.get(), CURLOPT_READFUNCTION, Read);
  curl_easy_setopt(handle.get(), CURLOPT_WRITEFUNCTION, Discard);
  return handle;
}

std::string Put(CURL* handle, const std::string& url, Body body) {
  curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
  curl_easy_setopt(handle, CURLOPT_READDATA, &body);
  if (!absl::GetFlag(FLAGS_chunked)) {
    curl_easy_setopt(handle, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(body.left));
  }
  if (const CURLcode code = curl_easy_perform(handle); code != CURLE_OK) {
    return url + ": " + curl_easy_strerror(code);
  }
  long status = 0;
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  return status / 100 == 2 ? "" : url + ": status " + std::to_string(status);
}

std::string Numbered(std::string url, int64_t number) {
  const size_t place = url.find("%d");
  return place == std::string::npos ? url : url.replace(place, 2, std::to_string(number));
}

int Run() {
  curl_global_init(CURL_GLOBAL_DEFAULT);
  // Without "Expect: 100-continue", which costs a round trip, and without a type.
  std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers(
      curl_slist_append(nullptr, "Expect:"), curl_slist_free_all);
  const int64_t size = absl::GetFlag(FLAGS_size);
  const auto make = absl::GetFlag(FLAGS_text) ? LogLines : Incompressible;
  const std::string pattern = make(std::min<int64_t>(size, kPattern));
  std::vector<Handle> handles;
  for (int i = 0; i < absl::GetFlag(FLAGS_senders); ++i) {
    handles.push_back(MakeHandle(headers.get()));
  }
  const std::string url = absl::GetFlag(FLAGS_url);
  return Measure(absl::GetFlag(FLAGS_count), absl::GetFlag(FLAGS_senders),
                 [&](int sender, int64_t i) {
                   return Put(handles[sender].get(), Numbered(url, i), Body{pattern, size});
                 });
}

}  // namespace
}  // namespace muster::load

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("PUTs bodies; prints how long it took.");
  absl::ParseCommandLine(argc, argv);
  return muster::load::Run();
}
