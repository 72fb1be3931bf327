#include "services/common/base/inspection_server.h"

#include <httplib.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/errors/base.h"

namespace muster {
namespace {

constexpr char kLoopback[] = "127.0.0.1";
constexpr size_t kThreads = 2;
constexpr int kTimeoutSeconds = 5;
constexpr size_t kMaxBody = 1024;

httplib::Server::Handler Probe(std::function<absl::Status()> check) {
  return [check = std::move(check)](const httplib::Request&, httplib::Response& response) {
    const absl::Status status = check ? check() : absl::OkStatus();
    if (status.ok()) {
      response.set_content("ok\n", "text/plain");
      return;
    }
    const std::string reason = ReasonOf(status);
    response.status = 503;
    response.set_content(absl::StrCat(reason, reason.empty() ? "" : ": ", status.message(), "\n"),
                         "text/plain");
  };
}

}  // namespace

struct InspectionServer::State {
  httplib::Server server;
  int port = -1;
  std::atomic<bool> ended = false;
  std::thread thread;
};

InspectionServer::InspectionServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

InspectionServer::~InspectionServer() {
  state_->server.stop();
  state_->thread.join();
}

uint16_t InspectionServer::port() const { return static_cast<uint16_t>(state_->port); }

absl::StatusOr<std::unique_ptr<InspectionServer>> InspectionServer::Start(const Metrics& metrics,
                                                                          Options options) {
  auto state = std::make_unique<State>();
  httplib::Server& server = state->server;
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_read_timeout(kTimeoutSeconds);
  server.set_write_timeout(kTimeoutSeconds);
  server.set_keep_alive_timeout(kTimeoutSeconds);
  server.set_payload_max_length(kMaxBody);
  // The library's own choice, SO_REUSEPORT, would let two programs share a port unnoticed.
  server.set_socket_options([](socket_t socket) {
    const int on = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  });
  server.Get("/metrics", [&metrics](const httplib::Request&, httplib::Response& response) {
    response.set_content(metrics.Text(), "text/plain; version=0.0.4; charset=utf-8");
  });
  server.Get("/livez", Probe(std::move(options.live)));
  server.Get("/readyz", Probe(std::move(options.ready)));
  if (options.port == 0) {
    state->port = server.bind_to_any_port(kLoopback);
  } else if (server.bind_to_port(kLoopback, options.port)) {
    state->port = options.port;
  }
  if (state->port < 0) {
    return errors::PortInUse(kLoopback, options.port);
  }
  state->thread = std::thread([s = state.get()] {
    s->server.listen_after_bind();
    s->ended = true;
  });
  // A stop before the loop has begun would be lost.
  while (!server.is_running() && !state->ended) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return std::unique_ptr<InspectionServer>(new InspectionServer(std::move(state)));
}

}  // namespace muster
