#include "services/common/base/loopback_http_server.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>

namespace muster {
namespace {

void AddEcho(httplib::Server& server) {
  server.Post("/echo", [](const httplib::Request& request, httplib::Response& response) {
    response.set_content(request.body, "text/plain");
  });
}

TEST(LoopbackHttpServerTest, RequestIsAnswered) {
  const auto server = LoopbackHttpServer::Start({}, AddEcho);
  ASSERT_NE(server, nullptr);
  httplib::Client client(LoopbackHttpServer::address(), server->port());
  EXPECT_EQ(client.Post("/echo", "text", "text/plain")->body, "text");
}

TEST(LoopbackHttpServerTest, PortInUseIsNotShared) {
  auto first = LoopbackHttpServer::Start({}, AddEcho);
  const uint16_t port = first->port();
  EXPECT_EQ(LoopbackHttpServer::Start({.port = port}, AddEcho), nullptr);
  first.reset();
  EXPECT_NE(LoopbackHttpServer::Start({.port = port}, AddEcho), nullptr);
}

TEST(LoopbackHttpServerTest, LargeBodyIsRefused) {
  const auto server = LoopbackHttpServer::Start({.max_body = 10}, AddEcho);
  httplib::Client client(LoopbackHttpServer::address(), server->port());
  EXPECT_EQ(client.Post("/echo", std::string(11, 'x'), "text/plain")->status, 413);
  EXPECT_EQ(client.Post("/echo", std::string(10, 'x'), "text/plain")->status, 200);
}

TEST(LoopbackHttpServerTest, DestructorWaitsForRequestInProgress) {
  std::promise<void> begun;
  std::promise<void> let_end;
  std::atomic<bool> handled = false;
  auto server = LoopbackHttpServer::Start({}, [&](httplib::Server& http) {
    http.Get("/slow", [&](const httplib::Request&, httplib::Response&) {
      begun.set_value();
      let_end.get_future().wait();
      handled = true;
    });
  });
  std::thread request([port = server->port()] {
    httplib::Client(LoopbackHttpServer::address(), port).Get("/slow");
  });
  begun.get_future().wait();
  std::thread releaser([&] { let_end.set_value(); });
  server.reset();
  EXPECT_TRUE(handled);
  releaser.join();
  request.join();
}

}  // namespace
}  // namespace muster
