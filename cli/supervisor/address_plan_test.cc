#include "cli/supervisor/address_plan.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "cli/supervisor/home.h"
#include "cli/supervisor/listening_sockets.h"
#include "cli/supervisor/test_folder.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/unique_fd.h"

namespace muster::supervisor {
namespace {

class AddressPlanTest : public ::testing::Test {
 protected:
  AddressPlanTest() { EXPECT_TRUE(MakeHomeFolders(home_).ok()); }

  AddressPlan Plan(const AddressOptions& options) {
    auto plan = PlanAddresses(home_, options, running_);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return *std::move(plan);
  }

  // Writes the configuration files as `muster up` does.
  void Write(const AddressPlan& plan) {
    for (const std::string_view service : kServices) {
      EXPECT_TRUE(WriteFileAtomically(ConfigFile(home_, service),
                                      WithValues("", AddressValues(plan, service)))
                      .ok());
    }
  }

  const TestFolder folder_;
  const Home home_{folder_ / "home"};
  bool running_ = false;
};

struct sockaddr_in Loopback(uint16_t port) {
  struct sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

TEST_F(AddressPlanTest, DefaultAddressesAreLoopback) {
  const AddressPlan plan = Plan({});
  EXPECT_EQ(plan.listen.at("aggregator").ToString(), "127.0.0.1:7440");
  EXPECT_EQ(plan.listen.at("status").ToString(), "127.0.0.1:7441");
  EXPECT_EQ(plan.listen.at("gateway").ToString(), "127.0.0.1:7443");
  EXPECT_EQ(plan.listen.at("jobs").ToString(), "127.0.0.1:7446");
  EXPECT_EQ(AddressValues(plan, "jobs").at("relay_targets"), "[\"127.0.0.1:7445\"]");
  EXPECT_EQ(AddressValues(plan, "aggregator").at("jobs_targets"), "[\"127.0.0.1:7446\"]");
  EXPECT_EQ(AddressValues(plan, "relay").at("jobs_targets"), "[\"127.0.0.1:7446\"]");
  EXPECT_EQ(plan.legacy_ports, "7450-7949");
  EXPECT_EQ(plan.legacy_host, "");
  EXPECT_EQ(AddressValues(plan, "aggregator").at("legacy_host"), "\"\"");
  EXPECT_EQ(AddressValues(plan, "gateway"),
            (ConfigValues{{"listen", "\"127.0.0.1:7443\""},
                          {"aggregator_targets", "[\"127.0.0.1:7440\"]"},
                          {"status_targets", "[\"127.0.0.1:7441\"]"},
                          {"relay_targets", "[\"127.0.0.1:7445\"]"},
                          {"jobs_targets", "[\"127.0.0.1:7446\"]"},
                          {"legacy_bind", "\"127.0.0.1\""},
                          {"legacy_ports", "\"7450-7949\""},
                          {"legacy_port", "7449"},
                          {"status_listen", "\"127.0.0.1:8002\""},
                          {"status_urls", "[\"https://127.0.0.1:8002\"]"},
                          {"status_ports", "\"8010-8109\""},
                          {"tunnel_relay", "\"127.0.0.1:7445\""},
                          {"tunnel_join", "\"127.0.0.1:7444\""}}));
}

TEST_F(AddressPlanTest, StatusListenerFollowsTheRequestedPortAndIsKept) {
  Write(Plan({.advertise = {"10.0.0.5"}, .port = 9000}));
  const AddressPlan plan = Plan({});
  EXPECT_EQ(plan.status_listener.ToString(), "0.0.0.0:9002");
  EXPECT_EQ(plan.status_ports, "9510-9609");
  EXPECT_EQ(AddressValues(plan, "aggregator").at("status_urls"), "[\"https://10.0.0.5:9002\"]");
  EXPECT_EQ(AddressValues(plan, "aggregator").at("tunnel_targets"), "[\"wss://10.0.0.5:9002\"]");
  EXPECT_EQ(Plan({.port = 0}).status_listener.port, 9002);
  EXPECT_EQ(Plan({.port = 9100}).status_listener.port, 9102);
}

TEST_F(AddressPlanTest, JoinListenerIsOnTheHostOfTheAggregator) {
  EXPECT_EQ(Plan({}).join.ToString(), "127.0.0.1:7444");
  Write(Plan({.advertise = {"10.0.0.5"}, .port = 9000}));
  EXPECT_EQ(Plan({}).join.ToString(), "0.0.0.0:9004");
  EXPECT_EQ(AddressValues(Plan({}), "aggregator").at("join_listen"), "\"0.0.0.0:9004\"");
  EXPECT_EQ(Plan({.port = 0}).join.port, 9004);
}

TEST_F(AddressPlanTest, AdvertisedRemoteHostListensOnAllAddresses) {
  const AddressPlan plan = Plan({.advertise = {"muster.example.com", "10.0.0.5"}});
  EXPECT_EQ(plan.listen.at("gateway").host, "0.0.0.0");
  const ConfigValues aggregator = AddressValues(plan, "aggregator");
  EXPECT_EQ(aggregator.at("advertise"), "[\"muster.example.com\",\"10.0.0.5\"]");
  EXPECT_EQ(aggregator.at("gateway_urls"),
            "[\"https://muster.example.com:7443\",\"https://10.0.0.5:7443\"]");
  EXPECT_EQ(AddressValues(plan, "status").at("aggregator_targets"), "[\"127.0.0.1:7440\"]");
  EXPECT_EQ(Plan({.advertise = {"localhost"}}).listen.at("status").host, "127.0.0.1");
  EXPECT_EQ(Plan({.advertise = {"10.0.0.5"}, .bind = "10.0.0.5"}).listen.at("status").host,
            "10.0.0.5");
}

TEST_F(AddressPlanTest, ConfiguredAddressesAreKeptUnlessRequested) {
  Write(Plan({.advertise = {"10.0.0.5"}, .port = 9000}));
  EXPECT_EQ(Plan({}).listen.at("gateway").ToString(), "0.0.0.0:9003");
  EXPECT_EQ(Plan({}).advertise, std::vector<std::string>{"10.0.0.5"});
  EXPECT_EQ(Plan({}).legacy_ports, "9010-9509");
  const AddressPlan changed = Plan({.service_port = {{"status", 9500}}, .legacy_ports = "1-2"});
  EXPECT_EQ(changed.listen.at("status").port, 9500);
  EXPECT_EQ(changed.listen.at("aggregator").port, 9000);
  EXPECT_EQ(changed.legacy_ports, "1-2");
}

TEST_F(AddressPlanTest, AnyPortIsChosenOnceAndKept) {
  AddressPlan first = Plan({.port = 0});
  EXPECT_NE(first.listen.at("aggregator").port, first.listen.at("status").port);
  EXPECT_NE(first.listen.at("aggregator").port, 0);
  EXPECT_EQ(first.legacy_ports, "0");
  EXPECT_NE(first.legacy_port, 0);
  EXPECT_NE(first.status_listener.port, 0);
  EXPECT_EQ(first.status_ports, "0");
  Write(first);
  first.reservations.clear();
  EXPECT_EQ(Plan({.port = 0}).status_listener.port, first.status_listener.port);
  EXPECT_EQ(Plan({.port = 0}).listen, first.listen);
  EXPECT_EQ(Plan({.port = 0}).legacy_port, first.legacy_port);
}

TEST_F(AddressPlanTest, AnyPortReplacesAConfiguredOneThatAnotherProgramUses) {
  const AddressPlan used = Plan({.port = 0});  // its reservations stay
  Write(used);
  const AddressPlan other = Plan({.port = 0});
  EXPECT_NE(other.listen.at("aggregator").port, used.listen.at("aggregator").port);
  EXPECT_NE(other.status_listener.port, used.status_listener.port);
  EXPECT_NE(other.legacy_port, used.legacy_port);
  running_ = true;  // the fleet itself uses them
  EXPECT_EQ(Plan({.port = 0}).listen, used.listen);
}

TEST_F(AddressPlanTest, AnyPortKeepsAConfiguredOneWithClosedConnectionsOfTheService) {
  AddressPlan first = Plan({.port = 0});
  Write(first);
  const HostPort address = first.listen.at("aggregator");
  first.reservations.clear();
  {
    ListeningSockets sockets;
    const auto listener = sockets.Listen("aggregator", address);
    ASSERT_TRUE(listener.ok());
    UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const struct sockaddr_in peer = Loopback(address.port);
    ASSERT_EQ(
        ::connect(client.get(), reinterpret_cast<const struct sockaddr*>(&peer), sizeof(peer)), 0);
    UniqueFd accepted(::accept4(listener->fd, nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(accepted.valid());
    accepted.reset();  // first, so that TIME_WAIT is at the service
  }
  EXPECT_EQ(Plan({.port = 0}).listen, first.listen);
}

TEST_F(AddressPlanTest, ChosenPortIsReservedUntilItsServiceListens) {
  const AddressPlan plan = Plan({.port = 0});
  const HostPort address = plan.listen.at("gateway");
  ASSERT_EQ(address.host, "127.0.0.1");
  const struct sockaddr_in local = Loopback(address.port);
  const UniqueFd other(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_NE(::bind(other.get(), reinterpret_cast<const struct sockaddr*>(&local), sizeof(local)), 0)
      << "another program that chooses ports got the port";
  ListeningSockets sockets;
  EXPECT_TRUE(sockets.Listen("gateway", address).ok());
}

TEST_F(AddressPlanTest, HostPatternIsKeptUntilItIsCleared) {
  Write(Plan({.port = 9000, .legacy_host = "{run}.collect.example.org"}));
  AddressPlan plan = Plan({.advertise = {"10.0.0.5"}});
  EXPECT_EQ(AddressValues(plan, "aggregator").at("legacy_host"), "\"{run}.collect.example.org\"");
  EXPECT_EQ(AddressValues(plan, "gateway").at("legacy_port"), "9009");
  Write(Plan({.legacy_port = 443}));
  EXPECT_EQ(Plan({.port = 0}).legacy_port, 443);
  EXPECT_EQ(Plan({.port = 9100}).legacy_port, 9109);
  EXPECT_EQ(Plan({.legacy_host = ""}).legacy_host, "");
  EXPECT_FALSE((AddressOptions{.legacy_host = ""}).empty());
}

TEST_F(AddressPlanTest, InvalidHostPatternFails) {
  for (const char* pattern : {"collect.example.org", "{run}", "{run}.10", "{run}.a:1"}) {
    EXPECT_EQ(ReasonOf(PlanAddresses(home_, {.legacy_host = pattern}, false).status()),
              "INVALID_HOST_PATTERN")
        << pattern;
  }
}

TEST_F(AddressPlanTest, InvalidPortRangeFails) {
  for (const char* range : {"7450", "2-1", "a-b", "1-70000", "-"}) {
    EXPECT_EQ(ReasonOf(PlanAddresses(home_, {.legacy_ports = range}, false).status()),
              "INVALID_PORT_RANGE")
        << range;
  }
}

TEST_F(AddressPlanTest, HostThatCannotBeUsedFailsWithTheNameOfItsOption) {
  for (const char* bind : {"nope", "127.0.0.1:80", "127.0.0", "[::1]"}) {
    const absl::Status status = PlanAddresses(home_, {.bind = bind}, false).status();
    EXPECT_EQ(ReasonOf(status), "INVALID_HOST") << bind;
    EXPECT_EQ(status.message().substr(0, 8), "--bind: ") << status;
  }
  EXPECT_TRUE(CheckAddressOptions({.bind = "::1"}).ok());
  const absl::Status status = CheckAddressOptions({.advertise = {"example.org", "a b"}});
  EXPECT_EQ(status.message(), "--advertise: \"a b\" is neither a host name nor an IP address");
}

TEST(LocalTargetTest, WildcardAddressBecomesLoopback) {
  EXPECT_EQ(LocalTarget({"0.0.0.0", 1}), "127.0.0.1:1");
  EXPECT_EQ(LocalTarget({"::", 1}), "[::1]:1");
  EXPECT_EQ(LocalTarget({"10.0.0.5", 1}), "10.0.0.5:1");
}

}  // namespace
}  // namespace muster::supervisor
