// Handles of libcurl: for HTTPS requests with a client certificate, and for HTTP by a Unix socket.
#ifndef MUSTER_SERVICES_COMMON_RPC_HTTPS_HANDLE_H_
#define MUSTER_SERVICES_COMMON_RPC_HTTPS_HANDLE_H_

#include <curl/curl.h>

#include <memory>
#include <string>
#include <string_view>

namespace muster {

struct FreeCurl {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
};
using Curl = std::unique_ptr<CURL, FreeCurl>;

struct FreeHeaders {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, FreeHeaders>;

// Adds a line, "Name: value".
void AddHeader(HeaderList& list, const std::string& line);

// Returns a text with all but the unreserved characters of RFC 3986 encoded, for a part of a URL.
std::string UrlEscaped(std::string_view text);

// PEM: the CA of the server (empty: those of the system), the client's chain and its key (both
// empty: the client has no certificate).
struct HttpsCredentials {
  std::string_view ca;
  std::string_view certificate;
  std::string_view key;
};

// Returns a handle for requests by HTTPS alone; it copies the credentials. Null without memory.
Curl NewHttpsHandle(const HttpsCredentials& credentials);

// Returns a handle for requests by HTTP to the server of a Unix socket alone, whatever host a URL
// names and whatever proxy the environment names. Null without memory.
Curl NewUnixSocketHandle(const std::string& path);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_HTTPS_HANDLE_H_
