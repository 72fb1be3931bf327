// A small HTTP server on the loopback address, for the tools and plugins of this machine.
#ifndef MUSTER_SERVICES_COMMON_BASE_LOOPBACK_HTTP_SERVER_H_
#define MUSTER_SERVICES_COMMON_BASE_LOOPBACK_HTTP_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace httplib {
class Server;
}  // namespace httplib

namespace muster {

// Plain HTTP on 127.0.0.1 until destroyed, with separate threads. Thread-safe.
class LoopbackHttpServer {
 public:
  struct Options {
    uint16_t port = 0;           // 0: any free one
    size_t threads = 2;          // each serves one connection
    int keep_alive_seconds = 5;  // of an idle connection
    size_t max_body = 1024;      // in bytes; a larger one is answered with 413
  };

  // `add_handlers` is called once, before the server listens. Returns null if another program uses
  // the port.
  static std::unique_ptr<LoopbackHttpServer> Start(
      const Options& options, const std::function<void(httplib::Server&)>& add_handlers);

  // Waits for requests in progress.
  ~LoopbackHttpServer();

  static const char* address() { return "127.0.0.1"; }
  uint16_t port() const;

 private:
  struct State;
  explicit LoopbackHttpServer(std::unique_ptr<State> state);

  const std::unique_ptr<State> state_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_LOOPBACK_HTTP_SERVER_H_
