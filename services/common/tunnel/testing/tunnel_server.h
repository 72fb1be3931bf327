// A server at the outer end of tunnels, for tests: real TCP, TLS and WebSocket.
#ifndef MUSTER_SERVICES_COMMON_TUNNEL_TESTING_TUNNEL_SERVER_H_
#define MUSTER_SERVICES_COMMON_TUNNEL_TESTING_TUNNEL_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace muster {

// The behaviour of a server.
struct TunnelServerScript {
  bool silent = false;  // accepts connections, and sends nothing
  std::string connect;  // the answer to a CONNECT that precedes TLS; empty: none is expected
  std::string decline;  // the HTTP answer to the upgrade; empty: it is accepted
  std::string subprotocol = "muster.tunnel.v1";
  bool text = false;         // echoes texts, not binary messages
  bool endless = false;      // sends without end, and reads nothing
  bool end_at_once = false;  // closes the WebSocket after the upgrade
  bool deaf = false;         // reads nothing after the upgrade, until the test ends
};

// Echoes the messages of each connection on a separate thread. The certificate is self-signed,
// for 127.0.0.1. Thread-safe.
class TunnelServer {
 public:
  static std::unique_ptr<TunnelServer> Start(TunnelServerScript script);
  virtual ~TunnelServer() = default;

  virtual uint16_t port() const = 0;
  virtual std::string certificate_pem() const = 0;
  // The head of the last CONNECT, and that of the last upgrade.
  virtual std::string connect_head() const = 0;
  virtual std::string upgrade_target() const = 0;
  // The bytes that an endless server has sent.
  virtual size_t sent() const = 0;
  // The number of WebSockets that have ended.
  virtual int ended() const = 0;
  // The close code of the last WebSocket that the client has ended; 0: none.
  virtual int close_code() const = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_TUNNEL_TESTING_TUNNEL_SERVER_H_
