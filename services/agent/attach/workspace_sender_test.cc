// Answers of the jobs service are tested in testing/e2e/workspace_test.go.
#include "services/agent/attach/workspace_sender.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "services/common/base/clock.h"
#include "services/common/base/file_ops.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

TEST(WorkspaceSenderTest, DamagedArchiveIsMovedToTheRefusedOnes) {
  const std::string folder = ::testing::TempDir() + "/workspace-sender";
  const std::string damaged(32, 'a');
  const std::string whole(32, 'b');
  fs::remove_all(folder);
  fs::create_directories(folder + "/content");
  const auto outbox = WorkspaceOutbox::Open(PosixFileOps(), folder, "n1", SystemClock()).value();
  for (const std::string& job : {damaged, whole}) {
    ASSERT_TRUE(outbox->Save(job, {}, folder + "/content", [] { return false; }).ok());
  }
  std::ofstream(folder + "/workspaces/" + damaged + "/report") << "damaged";
  {
    const WorkspaceSender sender(*outbox, {.channel = [] { return nullptr; }});
    EXPECT_TRUE(testing::Await([&] { return outbox->Waiting().size() == 1; }));
  }
  EXPECT_EQ(outbox->Waiting(), std::vector<std::string>{whole});
  EXPECT_TRUE(fs::exists(folder + "/workspaces-refused/" + damaged + "/archive"));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace muster
