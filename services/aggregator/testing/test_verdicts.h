// A status service with verdicts from the test: a real server with a real certificate, on a free
// port.
#ifndef MUSTER_SERVICES_AGGREGATOR_TESTING_TEST_VERDICTS_H_
#define MUSTER_SERVICES_AGGREGATOR_TESTING_TEST_VERDICTS_H_

#include <memory>
#include <string>
#include <string_view>

#include "muster/v1/verdicts.pb.h"
#include "testing/fixtures/test_fleet.h"

namespace muster::testing {

// Thread-safe.
class TestVerdicts {
 public:
  // Serves as `identity`; `port` 0 selects a free port.
  TestVerdicts(const TestFleet& fleet, const TestIdentity& identity, int port = 0);
  ~TestVerdicts();

  int port() const { return port_; }
  std::string target() const;

  // Adds a verdict, which is sent to all current and later followers.
  void Send(const v1::Verdict& verdict);

  // The number of calls, and the identity of the last caller.
  int calls() const;
  std::string caller() const;

 private:
  class Service;
  struct Running;

  int port_ = 0;
  std::unique_ptr<Running> running_;
};

v1::Verdict Lost(std::string_view run, std::string_view plugin, std::string_view node,
                 std::string_view why = "CRASHED: the connection was closed without a goodbye");
v1::Verdict StartGraceExpired(std::string_view run, std::string_view why);

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_AGGREGATOR_TESTING_TEST_VERDICTS_H_
