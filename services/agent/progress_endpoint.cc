#include "services/agent/progress_endpoint.h"

#include <httplib.h>

#include <utility>

#include "services/common/errors/agent.h"

namespace muster {
namespace {

constexpr char kPath[] = "/progress";
constexpr size_t kThreads = 4;
// Limits idle connections, because each holds a thread.
constexpr int kKeepAliveSeconds = 1;
// The part of a too large body that is read, so that its sender sees the response.
constexpr size_t kMaxDrained = 16 * kMaxProgressBody;

void Answer(const ProgressRelay& relay, const std::string& body, httplib::Response& response) {
  const ProgressAnswer answer = relay(body);
  response.status = answer.code;
  response.set_content(answer.body, "text/plain; charset=utf-8");
}

void AddHandlers(httplib::Server& server, const ProgressRelay& relay) {
  const auto with_body = [relay](const httplib::Request&, httplib::Response& response,
                                 const httplib::ContentReader& read) {
    std::string body;
    size_t size = 0;
    const bool whole = read([&](const char* data, size_t count) {
      size += count;
      if (size <= kMaxProgressBody) body.append(data, count);
      return size <= kMaxDrained;
    });
    if (size > kMaxProgressBody) {
      response.status = 413;
      response.set_content("a report of progress takes at most 1 MiB\n", "text/plain");
    } else if (whole) {
      Answer(relay, body, response);
    }
  };
  // Methods whose requests have no body in this library.
  const auto without_body = [relay](const httplib::Request& request, httplib::Response& response) {
    Answer(relay, request.body, response);
  };
  server.Post(kPath, with_body);
  server.Put(kPath, with_body);
  server.Patch(kPath, with_body);
  server.Delete(kPath, with_body);
  server.Get(kPath, without_body);
  server.Options(kPath, without_body);
}

}  // namespace

ProgressEndpoint::ProgressEndpoint(std::unique_ptr<LoopbackHttpServer> server)
    : server_(std::move(server)) {}

absl::StatusOr<std::unique_ptr<ProgressEndpoint>> ProgressEndpoint::Start(
    uint16_t port, const ProgressRelay& relay) {
  auto server = LoopbackHttpServer::Start({.port = port,
                                           .threads = kThreads,
                                           .keep_alive_seconds = kKeepAliveSeconds,
                                           .max_body = kMaxDrained},
                                          [&](httplib::Server& http) { AddHandlers(http, relay); });
  if (server == nullptr) return errors::ProgressPortInUse(LoopbackHttpServer::address(), port);
  return std::unique_ptr<ProgressEndpoint>(new ProgressEndpoint(std::move(server)));
}

}  // namespace muster
