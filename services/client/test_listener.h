// The listener of a run for legacy clients, for tests of this folder: real TLS, answers from the
// test.
#ifndef MUSTER_SERVICES_CLIENT_TEST_LISTENER_H_
#define MUSTER_SERVICES_CLIENT_TEST_LISTENER_H_

#include <httplib.h>

#include <deque>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "services/client/test_peer.h"
#include "services/common/base/mutex.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/key.h"

namespace muster::client {

// A request as the listener received it.
struct SeenRequest {
  std::string path;
  std::string body;
  httplib::Headers headers;
};

// A listener of a run with mutual TLS and answers from the test. Thread-safe, except `answers`.
class TestListener {
 public:
  explicit TestListener(const TestFleet& fleet)
      : certificate_(Certificate::FromPem(fleet.listener_chain_pem).value()),
        key_(PrivateKey::FromPem(fleet.listener_key_pem).value()),
        authority_(Certificate::FromPem(fleet.run_ca_pem).value()),
        server_(certificate_.get(), key_.get(), Trust()) {
    server_.Put("/.*", [this](const httplib::Request& request, httplib::Response& response,
                              const httplib::ContentReader& read) {
      std::string body;
      read([&](const char* data, size_t size) {
        body.append(data, size);
        return true;
      });
      Answer(request, std::move(body), response);
    });
    server_.Post("/.*", [this](const httplib::Request& request, httplib::Response& response) {
      Answer(request, request.body, response);
    });
    server_.Get("/.*", [this](const httplib::Request& request, httplib::Response& response) {
      Answer(request, request.body, response);
      if (response.status == 200) response.set_content(health, "application/json");
      response.set_header(
          "Date", absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", absl::Now(), absl::UTCTimeZone()));
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::jthread([this] { server_.listen_after_bind(); });
    server_.wait_until_ready_by_polling();
  }
  ~TestListener() { server_.stop(); }

  std::string url() const { return "https://localhost:" + std::to_string(port_); }

  std::deque<int> answers;                             // then 200; set before use
  std::string health = R"({"interval_seconds":0.3})";  // to GET; set before use

  std::vector<SeenRequest> seen() {
    MutexLock lock(mutex_);
    return seen_;
  }

 private:
  struct Server : httplib::SSLServer {
    using httplib::SSLServer::SSLServer;
    void wait_until_ready_by_polling() {
      while (!is_running()) std::this_thread::yield();
    }
  };

  X509_STORE* Trust() const {
    X509_STORE* store = X509_STORE_new();
    X509_STORE_add_cert(store, authority_.get());
    return store;
  }

  void Answer(const httplib::Request& request, std::string body, httplib::Response& response) {
    MutexLock lock(mutex_);
    seen_.push_back({request.path, std::move(body), request.headers});
    response.status = answers.empty() ? 200 : answers.front();
    if (!answers.empty()) answers.pop_front();
    if (response.status == 503) response.set_header("Retry-After", "1");
    if (response.status != 200) response.set_content("because\n", "text/plain");
  }

  const Certificate certificate_;
  const PrivateKey key_;
  const Certificate authority_;
  Server server_;
  int port_ = 0;
  Mutex mutex_;
  std::vector<SeenRequest> seen_ ABSL_GUARDED_BY(mutex_);
  std::jthread thread_;
};

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_TEST_LISTENER_H_
