#include "services/common/rpc/https_handle.h"

namespace muster {
namespace {

// Sets up libcurl once per process. The end of the process needs no counterpart.
void SetUpOnce() {
  static const CURLcode done = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)done;
}

void SetBlob(CURL* curl, CURLoption option, std::string_view pem) {
  if (pem.empty()) return;
  curl_blob blob{const_cast<char*>(pem.data()), pem.size(), CURL_BLOB_COPY};
  curl_easy_setopt(curl, option, &blob);
}

}  // namespace

void AddHeader(HeaderList& list, const std::string& line) {
  // libcurl returns the first entry of the list: a new pointer only for the first line.
  curl_slist* first = curl_slist_append(list.get(), line.c_str());
  if (!list) list.reset(first);
}

std::string UrlEscaped(std::string_view text) {
  char* escaped = curl_easy_escape(nullptr, text.data(), static_cast<int>(text.size()));
  std::string copy = escaped == nullptr ? std::string() : std::string(escaped);
  curl_free(escaped);
  return copy;
}

Curl NewHttpsHandle(const HttpsCredentials& credentials) {
  SetUpOnce();
  Curl curl(curl_easy_init());
  if (!curl) return curl;
  CURL* const c = curl.get();
  curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "https");
  curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
  SetBlob(c, CURLOPT_CAINFO_BLOB, credentials.ca);
  curl_easy_setopt(c, CURLOPT_SSLCERTTYPE, "PEM");
  SetBlob(c, CURLOPT_SSLCERT_BLOB, credentials.certificate);
  curl_easy_setopt(c, CURLOPT_SSLKEYTYPE, "PEM");
  SetBlob(c, CURLOPT_SSLKEY_BLOB, credentials.key);
  return curl;
}

Curl NewUnixSocketHandle(const std::string& path) {
  SetUpOnce();
  Curl curl(curl_easy_init());
  if (!curl) return curl;
  CURL* const c = curl.get();
  curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http");
  curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(c, CURLOPT_UNIX_SOCKET_PATH, path.c_str());
  curl_easy_setopt(c, CURLOPT_PROXY, "");
  return curl;
}

}  // namespace muster
