// Builds by a real Docker daemon, pushed to a real registry; the test reads the outbox as the root
// relay does.
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/agent/docker/image_builder.h"
#include "services/agent/docker/testing/test_registry.h"
#include "services/agent/jobs/build_command.h"
#include "services/agent/jobs/container_sweep.h"
#include "services/agent/jobs/testing/job_container_fixture.h"
#include "services/common/templates/template_source.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// Sets the repository of the builds that follow, also in a killed agent.
void SetRepository(const std::string& repository) {
  setenv(kKilledAgentVariable, repository.c_str(), 1);
}

// A file of the build whose content is not part of the command, if there is one.
v1::Command::File stored_file;

v1::SignedCommand BuildOf(const std::string& image) {
  const char* repository = std::getenv(kKilledAgentVariable);
  v1::Command command;
  command.mutable_container()->set_image(image);
  v1::Command::Build& build = *command.mutable_container()->mutable_build();
  build.set_build(std::string(32, 'd'));
  build.set_type_document(absl::StrCat(
      "apiVersion: muster/v1\nkind: TemplateType\nname: site\nversion: 1.0.0\ncontract: 1\nimage: ",
      image, "\nbuild: {folder: /work}\n"));
  build.set_template_document(
      "apiVersion: muster/v1\nkind: Template\nname: web\nversion: 1.4.0\ntype: site@1.0.0\n");
  v1::Command::File& file = *build.add_files();
  file.set_path("index.html");
  file.set_content("hello");
  if (!stored_file.path().empty()) *build.add_files() = stored_file;
  build.mutable_source()->set_kind("zip");
  build.mutable_source()->set_sha256(SourceDigest(build.files()));
  build.set_repository(repository == nullptr ? "" : repository);
  v1::SignedCommand signed_command;
  signed_command.set_command(command.SerializeAsString());
  return signed_command;
}

// The part of an agent that is killed: see KillAgentOf.
TEST(KilledAgent, BuildsAnImage) { RunKilledAgent(BuildOf); }

class JobBuildTest : public JobContainerFixture {
 protected:
  JobBuildTest() : JobContainerFixture(BuildOf) {}
  ~JobBuildTest() override {
    unsetenv(kKilledAgentVariable);
    stored_file.Clear();
  }

  JobPlan BuildPlan(const std::string& image = "") {
    JobPlan plan = PlanOf(image.empty() ? docker_->image() : image, "");
    plan.argv.clear();
    plan.is_build = true;
    return plan;
  }

  void AwaitOutput(const std::string& text) {
    ASSERT_TRUE(testing::Await([&] {
      std::ifstream file(absl::StrCat(folder_, "/", kJob, "/records"));
      const std::string records((std::istreambuf_iterator<char>(file)), {});
      return records.find(text) != std::string::npos;
    }));
  }

  std::set<std::string> Leftovers() {
    return ImageBuilder(engine_).ListJobs(BuilderOf("/agent", "n1")).value();
  }
};

TEST_F(JobBuildTest, PushedDigestIsAnOutput) {
  const testing::TestRegistry registry;
  SetRepository(registry.address() + "/templates/web");
  Start(BuildPlan());
  const Records records = Finish();
  EXPECT_EQ(records.final.outcome(), v1::JOB_OUTCOME_EXITED) << records.final.ShortDebugString();
  EXPECT_EQ(records.final.exit_code(), 0);
  EXPECT_EQ(records.started, 1);
  EXPECT_THAT(records.out, HasSubstr("COPY [\"files/\", \"/work/\"]"));
  ASSERT_EQ(records.outputs.size(), 1u);
  ASSERT_EQ(records.outputs[0].outputs_size(), 1);
  EXPECT_EQ(records.outputs[0].outputs(0).name(), "image");
  const std::string value = records.outputs[0].outputs(0).value();
  EXPECT_THAT(value, StartsWith(absl::StrCat("\"", registry.address(), "/templates/web@sha256:")));
  EXPECT_THAT(Leftovers(), IsEmpty());
  const std::string image = value.substr(1, value.size() - 2);
  EXPECT_TRUE(engine_.PullImage(image, absl::Minutes(1), [] { return false; }).ok());
}

TEST_F(JobBuildTest, StoredFileIsReadForTheBuildAndRemovedAfterIt) {
  const testing::TestRegistry registry;
  SetRepository(registry.address() + "/templates/web");
  stored_file = contents_.Add("large", std::string(700'000, 'x'));
  Start(BuildPlan());
  const Records records = Finish();
  EXPECT_EQ(records.final.exit_code(), 0) << records.final.ShortDebugString();
  ASSERT_EQ(records.outputs.size(), 1u);
  EXPECT_GT(contents_.offsets().size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(absl::StrCat(folder_, "/", kJob, "/files")));
}

TEST_F(JobBuildTest, UnreadableContentIsItsReason) {
  SetRepository("r.example/web");
  stored_file = contents_.Add("large", "signed");
  contents_.Replace(stored_file, "forged");
  Start(BuildPlan());
  const Records records = Finish();
  EXPECT_EQ(records.final.outcome(), v1::JOB_OUTCOME_FAILED);
  EXPECT_EQ(records.final.reason(), "CONTENT_DAMAGED") << records.final.detail();
  EXPECT_EQ(records.started, 0);
  EXPECT_FALSE(std::filesystem::exists(absl::StrCat(folder_, "/", kJob, "/files")));
}

TEST_F(JobBuildTest, UnreachableRegistryIsItsReason) {
  SetRepository("127.0.0.1:1/web");  // no port of a registry
  Start(BuildPlan());
  const Records records = Finish();
  EXPECT_EQ(records.final.outcome(), v1::JOB_OUTCOME_FAILED);
  EXPECT_EQ(records.final.reason(), "IMAGE_PUSH_FAILED") << records.final.detail();
  EXPECT_THAT(records.outputs, IsEmpty());
  EXPECT_THAT(Leftovers(), IsEmpty());
}

TEST_F(JobBuildTest, BaseThatCannotBePulledIsItsReason) {
  SetRepository("127.0.0.1:1/web");
  Start(BuildPlan("127.0.0.1:1/base@sha256:" + std::string(64, 'a')));
  EXPECT_EQ(Finish().final.reason(), "IMAGE_PULL_FAILED");
}

// A build executes nothing, also not what the base image asks for.
TEST_F(JobBuildTest, BaseWithTriggersIsRefused) {
  SetRepository("127.0.0.1:1/web");
  Start(BuildPlan(docker_->MakeImage("[\"/bin/sh\"]\nONBUILD RUN echo executed")));
  const Records records = Finish();
  EXPECT_EQ(records.final.reason(), "BASE_IMAGE_HAS_TRIGGERS") << records.final.detail();
  EXPECT_THAT(records.out, Not(HasSubstr("executed")));
}

TEST_F(JobBuildTest, CancelEndsThePush) {
  const testing::SilentRegistry registry;
  SetRepository(registry.address() + "/web");
  Start(BuildPlan());
  AwaitOutput("push refers");
  process_->Stop(JobStop::kCancelled);
  const Records records = Finish();
  EXPECT_EQ(records.final.outcome(), v1::JOB_OUTCOME_CANCELLED);
  EXPECT_THAT(records.outputs, IsEmpty());
  EXPECT_THAT(Leftovers(), IsEmpty());
}

TEST_F(JobBuildTest, SilentRegistryEndsAtTheTimeLimit) {
  const testing::SilentRegistry registry;
  SetRepository(registry.address() + "/web");
  JobPlan plan = BuildPlan();
  plan.time_limit = absl::Seconds(5);
  Start(plan);
  const Records records = Finish();
  EXPECT_EQ(records.final.outcome(), v1::JOB_OUTCOME_TIMED_OUT);
  EXPECT_EQ(records.final.reason(), "TIME_LIMIT");
  EXPECT_THAT(records.final.detail(),
              HasSubstr(absl::StrCat("while it pushed the image ", registry.address(), "/web")));
  EXPECT_THAT(Leftovers(), IsEmpty());
}

TEST_F(JobBuildTest, BuildOfAKilledAgentIsLostAndItsImagesAreRemoved) {
  const testing::SilentRegistry registry;
  SetRepository(registry.address() + "/web");
  KillAgentOf("", "push refers");
  EXPECT_THAT(Leftovers(), ElementsAre(kJob));
  Recover();
  const Records records = ReadRecords(*job_);
  EXPECT_EQ(records.final.outcome(), v1::JOB_OUTCOME_LOST);
  EXPECT_EQ(records.final.reason(), "AGENT_DIED");
  EXPECT_TRUE(job_->has_started());
  const std::string builder = BuilderOf("/agent", "n1");
  EXPECT_TRUE(SweepBuilds(engine_, builder, [](const std::string&) { return true; }).ok());
  EXPECT_THAT(Leftovers(), ElementsAre(kJob)) << "it is in use";
  EXPECT_TRUE(SweepBuilds(engine_, BuilderOf("/agent", "n2"), [](const std::string&) {
                return false;
              }).ok());
  EXPECT_THAT(Leftovers(), ElementsAre(kJob)) << "those of another agent";
  // Docker holds the image until it has seen the end of the connection.
  EXPECT_TRUE(testing::Await([&] {
    return SweepBuilds(engine_, builder, [](const std::string&) { return false; }).ok() &&
           Leftovers().empty();
  }));
}

TEST_F(JobBuildTest, KilledDaemonFailsTheBuild) {
  const testing::SilentRegistry registry;
  SetRepository(registry.address() + "/web");
  Start(BuildPlan());
  AwaitOutput("push refers");
  docker_->Kill();
  thread_.join();
  docker_->Start();
  const Records records = ReadRecords(*job_);
  EXPECT_EQ(records.final.outcome(), v1::JOB_OUTCOME_FAILED);
  EXPECT_EQ(records.final.reason(), "DOCKER_UNREACHABLE") << records.final.detail();
  EXPECT_TRUE(SweepBuilds(engine_, BuilderOf("/agent", "n1"), [](const std::string&) {
                return false;
              }).ok());
  EXPECT_THAT(Leftovers(), IsEmpty());
}

}  // namespace
}  // namespace muster
