// Runs outside of the sandbox, where no process can become another user.
#include <unistd.h>

#include <filesystem>

#include "gtest/gtest.h"
#include "services/agent/jobs/job_process.h"
#include "services/agent/jobs/testing/memory_contents.h"

namespace muster {
namespace {

TEST(JobUserTest, CommandRunsAsTheUserOfItsRule) {
  if (geteuid() != 0) GTEST_SKIP() << "takes root";
  const std::string folder = ::testing::TempDir() + "/job-user";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const std::string id(32, 'a');
  auto job = NodeJobFolder::Create(PosixFileOps(), folder, id, "n1", {}).value();
  JobPlan plan;
  plan.argv = {"/bin/sh", "-c", "id -un; echo $USER $LOGNAME $HOME; umask; pwd"};
  plan.user = "nobody";
  plan.directory = "/usr";
  plan.time_limit = absl::Minutes(1);
  plan.max_output = 1 << 20;
  SpoolQuota quota(1 << 20);
  DockerEngine docker("/none");
  testing::MemoryContents contents;
  JobProcess process({"/agent", "n1", quota, docker, contents}, *job, id, plan, [] {});
  process.Run();
  v1::JobRecords records;
  ASSERT_TRUE(job->log()->NextRecords(1 << 20, nullptr, &records).ok());
  std::string out;
  for (const v1::JobRecord& record : records.records()) out += record.output().data();
  const std::string home = ProcessUser::Find("nobody")->home;
  EXPECT_EQ(out, "nobody\nnobody nobody " + home + "\n0022\n/usr\n");
  EXPECT_EQ(records.records().rbegin()->final().exit_code(), 0);
}

}  // namespace
}  // namespace muster
