// A runner of collections that delivers over real TLS to a peer of the test.
#ifndef MUSTER_SERVICES_AGENT_COLLECTION_TESTING_RUNNER_FIXTURE_H_
#define MUSTER_SERVICES_AGENT_COLLECTION_TESTING_RUNNER_FIXTURE_H_

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "services/agent/collection/collection_runner.h"
#include "services/client/test_peer.h"
#include "services/common/base/executor.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/secret_file.h"
#include "services/common/rpc/proto_time.h"
#include "testing/fixtures/await.h"

namespace muster {

inline constexpr char kCollect[] = "commands: [{argv: ['**'], actions: [collect]}]\n";
inline constexpr char kSayHello[] =
    "echo hello > $RESULTS_DIR/out.txt; printf $RESULTS_DIR/out.txt > $RESULTS_DIR/done";
// Ends without a result, and may run again.
inline constexpr char kNoWork[] = "{driver: DaemonSet, plugin-name: x}\nspec: {image: busybox}\n";
// An error result, and so not run again.
inline constexpr char kInvalid[] = "{driver: Deamon}\n";

class CollectionRunnerTest : public ::testing::Test {
 protected:
  CollectionRunnerTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ + "/tls");
    const auto [chain, key] = fleet_.RunCredential("n1");
    Write("tls/cert.pem", chain);
    Write("tls/key.pem", key);
    Write("tls/ca.pem", fleet_.root_pem);
    Write("policy.yaml", kCollect);
    peer_.Start();
    Begin();
  }

  void Begin() {
    runner_.reset();
    CollectionOptions options = options_;
    options.folder = folder_;
    options.node = "n1";
    options.identity_folder = folder_ + "/tls";
    options.relay_targets = {peer_.target()};
    options.clock = &clock_;
    options.timers = &clock_;
    options.executor = &executor_;
    runner_ = std::make_unique<CollectionRunner>(std::move(options));
  }

  void Write(const std::string& name, std::string_view text) {
    ASSERT_TRUE(WriteFileAtomically(folder_ + "/" + name, text).ok());
  }

  // Returns an offer of plugin "facts" that runs `script`.
  v1::CollectionOffer Offer(const std::string& script) {
    return OfferOf("{driver: DaemonSet, plugin-name: facts}\nspec:\n  command: [/bin/sh, -c, '" +
                   script + "']\n");
  }
  v1::CollectionOffer OfferOf(const std::string& definition) {
    v1::CollectionOffer offer = OfferOf(fleet_.run, {"facts"}, definition);
    ToProto(absl::Now() + absl::Minutes(10), offer.mutable_deadline());
    return offer;
  }
  static v1::CollectionOffer OfferOf(const std::string& run,
                                     const std::vector<std::string>& plugins,
                                     const std::string& definition) {
    v1::CollectionOffer offer;
    offer.set_run(run);
    offer.add_nodes("n1");
    for (const std::string& plugin : plugins) {
      v1::CollectionOffer::Plugin& added = *offer.add_plugins();
      added.set_name(plugin);
      added.set_definition_yaml("sonobuoy-config: " + definition);
    }
    return offer;
  }

  client::TestPeer::Committed Collect(const v1::CollectionOffer& offer) {
    runner_->Offer(offer, peer_.target());
    EXPECT_TRUE(testing::Await([&] { return peer_.committed().has_value(); }));
    return peer_.committed().value_or(client::TestPeer::Committed());
  }

  const std::string folder_ = ::testing::TempDir() + "/collecting";
  const client::TestFleet fleet_ = client::TestFleet::Make();
  client::TestPeer peer_{fleet_};
  FakeClock clock_;  // of the removal of undelivered results
  Executor executor_{{.name = "background", .threads = 1}};
  CollectionOptions options_;  // the other options for Begin
  std::unique_ptr<CollectionRunner> runner_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_COLLECTION_TESTING_RUNNER_FIXTURE_H_
