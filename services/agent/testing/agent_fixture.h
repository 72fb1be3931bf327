// The agent as a program, with a result service of the test.
#ifndef MUSTER_SERVICES_AGENT_TESTING_AGENT_FIXTURE_H_
#define MUSTER_SERVICES_AGENT_TESTING_AGENT_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "services/client/client.h"
#include "services/client/test_peer.h"
#include "services/client/test_status_peer.h"
#include "services/common/base/subprocess.h"

namespace muster {

inline constexpr char kAgentProgram[] = "services/agent/agent_test_program";

inline std::string Definition(const std::string& shell) {
  // JSON is YAML.
  return nlohmann::json({{"sonobuoy-config", {{"driver", "DaemonSet"}, {"plugin-name", "facts"}}},
                         {"spec", {{"command", {"/bin/sh", "-c"}}, {"args", {shell}}}}})
      .dump();
}

class AgentTest : public ::testing::Test {
 protected:
  AgentTest() : base_(::testing::TempDir() + "/agent_test"), peer_(fleet_) {
    std::filesystem::remove_all(base_);
    std::filesystem::create_directories(base_ + "/results");
    peer_.Start();
    const auto [chain, key] = fleet_.RunCredential("n1");
    config_ = {{"grpc_targets", {peer_.target()}},
               {"plugin", "facts"},
               {"node", "n1"},
               {"fleet_ca_cert", fleet_.root_pem},
               {"client_cert", chain},
               {"client_key", key},
               {"results_dir", base_ + "/results"},
               {"state_dir", base_ + "/state"},
               {"done_file_delay", "10ms"},
               {"progress_port", 0}};
  }
  ~AgentTest() override {
    peer_.Stop();
    std::filesystem::remove_all(base_);
  }

  std::unique_ptr<Subprocess> Start(const std::string& submit = "") {
    const std::string file = base_ + "/node.json";
    std::ofstream(file) << config_.dump();
    SubprocessOptions options;
    options.argv = {kAgentProgram, file};
    if (!submit.empty()) options.argv.push_back(submit);
    options.environment = AllowListedEnvironment({"PATH", "HOME", "TMPDIR", "TSAN_OPTIONS"});
    options.environment.push_back("SECRET_OF_THE_AGENT=1");
    options.out = ChildOutput::Tail(4096);
    options.err = ChildOutput::Tail(16384);
    return Subprocess::Start(std::move(options)).value();
  }

  client::Code Run(const std::string& submit = "") {
    const auto child = Start(submit);
    const auto exit = child->Wait(absl::Minutes(3));
    if (!exit) ADD_FAILURE() << "the agent did not end:\n" << child->StderrTail();
    said_ = child->StderrTail();
    EXPECT_EQ(child->StdoutTail(), "");
    return exit && exit->signal == 0 ? static_cast<client::Code>(exit->exit_code)
                                     : client::Code::kFailed;
  }

  // Adds a status service.
  void StartStatus() {
    status_.Start();
    config_["status_targets"] = {status_.target()};
  }

  const client::TestFleet fleet_ = client::TestFleet::Make();
  const std::string base_;
  client::TestPeer peer_;
  client::TestStatusPeer status_{fleet_};
  nlohmann::json config_;
  std::string said_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_TESTING_AGENT_FIXTURE_H_
