#include "services/common/templates/workspaces.h"

#include <gtest/gtest.h>

#include "services/common/base/error.h"

namespace muster {
namespace {

v1::Command::WorkspaceReference Reference(const std::string& name, int64_t version) {
  v1::Command::WorkspaceReference reference;
  reference.set_workspace(name);
  reference.set_version(version);
  if (version > 0) {
    reference.set_sha256(std::string(32, 'd'));
    reference.set_size(100);
  }
  return reference;
}

TEST(WorkspacesTest, ReferenceHasAValidNameAndTheArchiveOfItsVersion) {
  EXPECT_TRUE(CheckWorkspace(Reference("w", 0)).ok());
  EXPECT_TRUE(CheckWorkspace(Reference("net.prod-1", 3)).ok());
  for (const char* name : {"", ".w", "a/b", "a b", "..", "\n"}) {
    EXPECT_EQ(ReasonOf(CheckWorkspace(Reference(name, 0))), "INVALID_WORKSPACE") << name;
  }
  EXPECT_EQ(ReasonOf(CheckWorkspace(Reference("w", -1))), "INVALID_WORKSPACE");
  auto with = Reference("w", 0);
  with.set_size(1);
  EXPECT_FALSE(CheckWorkspace(with).ok());
  auto large = Reference("w", 1);
  large.set_size(kMaxWorkspaceArchive);
  EXPECT_TRUE(CheckWorkspace(large).ok());
  large.set_size(kMaxWorkspaceArchive + 1);
  EXPECT_FALSE(CheckWorkspace(large).ok());
  auto without = Reference("w", 1);
  without.clear_sha256();
  EXPECT_FALSE(CheckWorkspace(without).ok());
}

TEST(WorkspacesTest, CommandWithAWorkspaceHasOneTarget) {
  v1::Command command;
  command.mutable_targets()->set_all(true);
  EXPECT_TRUE(CheckWorkspaceTarget(command).ok());
  *command.mutable_container()->mutable_deployment()->mutable_workspace() = Reference("w", 0);
  EXPECT_EQ(ReasonOf(CheckWorkspaceTarget(command)), "INVALID_WORKSPACE");
  command.mutable_targets()->set_all(false);
  command.mutable_targets()->set_count(2);
  EXPECT_FALSE(CheckWorkspaceTarget(command).ok());
  command.mutable_targets()->set_count(1);
  EXPECT_TRUE(CheckWorkspaceTarget(command).ok());
}

TEST(WorkspacesTest, EachFieldOfASavedWorkspaceIsInItsText) {
  v1::JobRecord::Workspace saved;
  saved.set_workspace("w");
  saved.set_version(2);
  saved.set_sha256(std::string(32, 'd'));
  saved.set_size(100);
  saved.set_omitted(1);
  EXPECT_TRUE(CheckSavedWorkspace(saved).ok());
  EXPECT_EQ(WorkspaceText(saved),
            "w\n2\n6464646464646464646464646464646464646464646464646464646464646464\n100\n1");
  saved.set_omitted(-1);
  EXPECT_FALSE(CheckSavedWorkspace(saved).ok());
  saved.set_omitted(0);
  saved.clear_sha256();
  EXPECT_FALSE(CheckSavedWorkspace(saved).ok());
}

}  // namespace
}  // namespace muster
