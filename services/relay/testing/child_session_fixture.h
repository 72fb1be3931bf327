// Sessions of children at a relay, without connections.
#ifndef MUSTER_SERVICES_RELAY_TESTING_CHILD_SESSION_FIXTURE_H_
#define MUSTER_SERVICES_RELAY_TESTING_CHILD_SESSION_FIXTURE_H_

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "services/common/base/executor.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/metrics.h"
#include "services/common/identity/attach_statement.h"
#include "services/common/identity/key.h"
#include "services/common/rpc/call_canceller.h"
#include "services/common/rpc/statement_budget.h"
#include "services/relay/testing/fake_child_stream.h"
#include "services/relay/testing/stub_upstream.h"
#include "services/relay/topology/child_session.h"
#include "testing/fixtures/fake_relay.h"
#include "testing/fixtures/test_commands.h"

namespace muster::testing {

inline constexpr absl::Duration kInterval = absl::Seconds(15);

inline std::string UriOf(const FleetName& name) {
  return std::visit([](const auto& one) { return ToUri({std::string(kTestFleet), one}).value(); },
                    name);
}

// Accepts the records of children when the test calls AcceptAll.
struct FakeSink final : RecordSink {
  void Receive(v1::JobRecords records, Done done) override {
    received.push_back(std::move(records));
    waiting.push_back(std::move(done));
  }
  void AcceptAll() {
    for (Done& done : std::exchange(waiting, {})) done();
  }

  std::vector<v1::JobRecords> received;
  std::vector<Done> waiting;
};

// A child with its session.
struct Child {
  std::string uri;
  TestIssuer::Credential credential;
  std::shared_ptr<FakeChildStream> stream = std::make_shared<FakeChildStream>();
  std::shared_ptr<ChildSession> session;
};

class ChildSessionFixture : public ::testing::Test {
 protected:
  Child Connect(const FleetName& name) {
    Child child{UriOf(name), issuer_.Issue(name)};
    const Identity identity =
        std::visit([](const auto& one) { return Identity{std::string(kTestFleet), one}; }, name);
    child.session = std::make_shared<ChildSession>(parts_, executor_, identity, child.stream);
    child.session->Begin();
    return child;
  }
  v1::AttachRequest Hello(const Child& child, bool is_relay = false) const {
    v1::AttachRequest message;
    auto& hello = *message.mutable_hello();
    *hello.mutable_statement() =
        SignAttachStatement(*PrivateKey::FromPem(child.credential.key_pem),
                            child.credential.chain_pem, child.uri, kSelf, std::string(32, 'k'),
                            clock_.Now() + absl::Minutes(30))
            .value();
    hello.set_instance_id("1");
    hello.set_is_relay(is_relay);
    return message;
  }
  // Hands the session a message, and waits until it was handled, in this many turns.
  void Deliver(const Child& child, v1::AttachRequest message, int turns = 1) {
    child.session->HandleMessage(std::move(message));
    for (; turns > 0; --turns) {
      std::promise<void> done;
      ASSERT_TRUE(executor_.Post([&done] { done.set_value(); }));
      done.get_future().wait();
    }
  }
  Child Attach(const FleetName& name, bool is_relay = false) {
    Child child = Connect(name);
    Deliver(child, Hello(child, is_relay));
    EXPECT_FALSE(child.stream->end) << *child.stream->end;
    child.session->HandleSent();
    child.stream->TakeSent();
    child.stream->reads = 0;
    return child;
  }
  static v1::AttachRequest RecordOf(const std::string& node, size_t bytes = 1) {
    v1::AttachRequest message;
    v1::JobRecord& record = *message.mutable_records()->add_records();
    record.set_job("j");
    record.set_node(node);
    record.set_sequence(1);
    record.mutable_output()->set_stream(v1::JOB_STREAM_STDOUT);
    record.mutable_output()->set_data(std::string(bytes, 'x'));
    return message;
  }

  static constexpr char kSelf[] = "spiffe://fleet-0badcafe.muster/service/relay/root";

  const TestIssuer issuer_;
  FakeClock clock_{absl::Now()};
  Topology topology_{{.name = "root"}, clock_};
  FakeSink records_;
  RecordFilter record_filter_{topology_};
  CallCanceller canceller_;
  Trust trust_{
      std::string(kTestFleet),
      [this] { return std::vector<Certificate>{*Certificate::FromPem(issuer_.root_pem())}; },
      topology_, canceller_, clock_};
  StubUpstream upstream_;
  Metrics metrics_;
  StatementBudget statements_{clock_, metrics_};
  const AttachParts parts_{
      topology_,  records_, record_filter_, trust_,
      upstream_,  clock_,   kInterval,      [] { return RelaySelf{kSelf, std::string(32, 'k')}; },
      statements_};
  Executor executor_{{"request", 1, 100}};
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_RELAY_TESTING_CHILD_SESSION_FIXTURE_H_
