// Installs the library to a prefix, builds the example outside of the tree, and runs it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "services/client/test_peer.h"
#include "services/common/base/subprocess.h"

namespace muster::client {
namespace {

namespace fs = std::filesystem;

// Runs a program to its end; returns its output if it failed.
std::string RunProgram(std::vector<std::string> argv, std::vector<std::string> environment) {
  SubprocessOptions options;
  options.argv = std::move(argv);
  options.environment = AllowListedEnvironment({"PATH", "TMPDIR"});
  options.environment.insert(options.environment.end(), environment.begin(), environment.end());
  options.out = ChildOutput::Tail(16384);
  options.err = ChildOutput::SameAsStdout();
  auto child = Subprocess::Start(std::move(options));
  if (!child.ok()) return child.status().ToString();
  const auto exit = (*child)->Wait(absl::Minutes(4));
  if (exit && exit->ok()) return "";
  return (exit ? exit->Describe() : "it did not end") + "\n" + (*child)->StdoutTail();
}

TEST(InstallTest, ExampleIsBuiltOutsideTheTreeAndDelivers) {
  const std::string folder = ::testing::TempDir() + "/install_test";
  fs::remove_all(folder);
  fs::create_directories(folder);
  const std::string prefix = folder + "/prefix";
  ASSERT_EQ(
      RunProgram({"services/client/install_files", prefix, "services/client/libmuster-client.a",
                  "services/client/client.h", "services/client/muster-client.pc.in"},
                 {}),
      "");
  fs::copy_file("services/client/example/disk_report.cc", folder + "/disk_report.cc");
  ASSERT_EQ(RunProgram({"/bin/sh", "-c",
                        "cd " + folder +
                            " && g++ disk_report.cc -o disk_report "
                            "$(pkg-config --cflags --libs muster-client)"},
                       {"PKG_CONFIG_PATH=" + prefix + "/lib/pkgconfig"}),
            "");

  const TestFleet fleet = TestFleet::Make();
  TestPeer peer(fleet);
  peer.Start();
  const auto [chain, key] = fleet.RunCredential("n1");
  std::ofstream(folder + "/node.json") << nlohmann::json({{"grpc_targets", {peer.target()}},
                                                          {"plugin", "facts"},
                                                          {"fleet_ca_cert", fleet.root_pem},
                                                          {"client_cert", chain},
                                                          {"client_key", key}});
  ASSERT_EQ(RunProgram({folder + "/disk_report", folder + "/node.json"}, {}), "");
  EXPECT_NE(peer.committed()->body.find("% full"), std::string::npos);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace muster::client
