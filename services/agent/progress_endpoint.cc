#include "services/agent/progress_endpoint.h"

#include <httplib.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/errors/agent.h"

namespace muster {
namespace {

constexpr char kLoopback[] = "127.0.0.1";
constexpr char kPath[] = "/progress";
constexpr size_t kThreads = 4;
constexpr int kTimeoutSeconds = 5;
// Limits idle connections, because each holds a thread.
constexpr int kKeepAliveSeconds = 1;
// The part of a too large body that is read, so that its sender sees the response.
constexpr size_t kMaxDrained = 16 * kMaxProgressBody;

void Answer(const ProgressRelay& relay, const std::string& body, httplib::Response& response) {
  const ProgressAnswer answer = relay(body);
  response.status = answer.code;
  response.set_content(answer.body, "text/plain; charset=utf-8");
}

}  // namespace

struct ProgressEndpoint::State {
  httplib::Server server;
  int port = -1;
  std::atomic<bool> ended = false;
  std::thread thread;
};

namespace {

void Serve(httplib::Server& server, const ProgressRelay& relay) {
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

ProgressEndpoint::ProgressEndpoint(std::unique_ptr<State> state) : state_(std::move(state)) {}

ProgressEndpoint::~ProgressEndpoint() {
  state_->server.stop();
  state_->thread.join();
}

uint16_t ProgressEndpoint::port() const { return static_cast<uint16_t>(state_->port); }

absl::StatusOr<std::unique_ptr<ProgressEndpoint>> ProgressEndpoint::Start(uint16_t port,
                                                                          ProgressRelay relay) {
  auto state = std::make_unique<State>();
  httplib::Server& server = state->server;
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_read_timeout(kTimeoutSeconds);
  server.set_write_timeout(kTimeoutSeconds);
  server.set_keep_alive_timeout(kKeepAliveSeconds);
  server.set_payload_max_length(kMaxDrained);
  // The library's default, SO_REUSEPORT, would let two agents share a port.
  server.set_socket_options([](socket_t socket) {
    const int on = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  });
  Serve(server, relay);
  if (port == 0) {
    state->port = server.bind_to_any_port(kLoopback);
  } else if (server.bind_to_port(kLoopback, port)) {
    state->port = port;
  }
  if (state->port < 0) {
    return errors::ProgressPortInUse(kLoopback, port);
  }
  state->thread = std::thread([s = state.get()] {
    s->server.listen_after_bind();
    s->ended = true;
  });
  // A stop before the loop has begun would be lost.
  while (!server.is_running() && !state->ended) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return std::unique_ptr<ProgressEndpoint>(new ProgressEndpoint(std::move(state)));
}

}  // namespace muster
