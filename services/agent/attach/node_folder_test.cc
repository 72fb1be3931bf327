#include "services/agent/attach/node_folder.h"

#include <filesystem>
#include <string>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "testing/fixtures/fake_relay.h"

namespace muster {
namespace {

TEST(NodeFolderTest, IncompleteFolderIsNotJoined) {
  const std::string folder = ::testing::TempDir() + "/incomplete";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  EXPECT_EQ(ReasonOf(NodeFolder::Load(folder).status()), "NOT_JOINED");
  TestIssuer().WriteNodeFolder(folder, "n1", {}, "");
  EXPECT_EQ(ReasonOf(NodeFolder::Load(folder).status()), "NOT_JOINED");
  TestIssuer().WriteNodeFolder(folder, "n1", {"127.0.0.1:1"}, "");
  std::filesystem::remove(folder + "/command-ca.pem");
  EXPECT_EQ(ReasonOf(NodeFolder::Load(folder).status()), "NOT_JOINED");
}

}  // namespace
}  // namespace muster
