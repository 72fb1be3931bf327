#include "services/common/base/loopback_http_server.h"

#include <httplib.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

namespace muster {
namespace {

constexpr int kTimeoutSeconds = 5;

}  // namespace

struct LoopbackHttpServer::State {
  httplib::Server server;
  int port = -1;
  std::atomic<bool> ended = false;
  std::thread thread;
};

LoopbackHttpServer::LoopbackHttpServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

LoopbackHttpServer::~LoopbackHttpServer() {
  state_->server.stop();
  state_->thread.join();
}

uint16_t LoopbackHttpServer::port() const { return static_cast<uint16_t>(state_->port); }

std::unique_ptr<LoopbackHttpServer> LoopbackHttpServer::Start(
    const Options& options, const std::function<void(httplib::Server&)>& add_handlers) {
  auto state = std::make_unique<State>();
  httplib::Server& server = state->server;
  server.new_task_queue = [threads = options.threads] { return new httplib::ThreadPool(threads); };
  server.set_read_timeout(kTimeoutSeconds);
  server.set_write_timeout(kTimeoutSeconds);
  server.set_keep_alive_timeout(options.keep_alive_seconds);
  server.set_payload_max_length(options.max_body);
  // The library's own choice, SO_REUSEPORT, would let two programs share a port unnoticed.
  server.set_socket_options([](socket_t socket) {
    const int on = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  });
  add_handlers(server);
  if (options.port == 0) {
    state->port = server.bind_to_any_port(address());
  } else if (server.bind_to_port(address(), options.port)) {
    state->port = options.port;
  }
  if (state->port < 0) return nullptr;
  state->thread = std::thread([s = state.get()] {
    s->server.listen_after_bind();
    s->ended = true;
  });
  // A stop before the loop has begun would be lost.
  while (!server.is_running() && !state->ended) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return std::unique_ptr<LoopbackHttpServer>(new LoopbackHttpServer(std::move(state)));
}

}  // namespace muster
