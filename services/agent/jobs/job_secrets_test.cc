// Secrets in containers of a real Docker daemon. The e2e tests fetch them through relays.
#include "services/agent/jobs/job_secrets.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/agent/jobs/testing/job_container_fixture.h"
#include "services/common/errors/templates.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kValue[] = "hunter22-and-more";
constexpr char kAwaitGo[] = "while [ ! -e /state/go ]; do sleep 0.1; done;";

// Answers with the values of the command, or with what a test sets.
class TestSource final : public SecretSource {
 public:
  absl::StatusOr<v1::SecretValues> Fetch(const std::string&,
                                         const std::function<bool()>&) override {
    ++fetches;
    if (!failure.ok()) return failure;
    v1::SecretValues values;
    auto& value = *values.add_values();
    value.set_name("db");
    value.set_secret(secret);
    value.set_version(3);
    value.set_value(absl::StrCat(text, "\n"));
    return values;
  }

  absl::Status failure;
  std::string secret = "prod/db";
  std::string text = kValue;
  int fetches = 0;
};

TestSource& Source() {
  static TestSource source;
  return source;
}

SecretHost SecretsOf(const std::string& folder) {
  static const SecretFolders folders(folder, "n1", DefaultMemoryFolders());
  return {&Source(), &folders};
}

v1::SignedCommand DeploymentOf(const std::string& image) {
  constexpr char kDocument[] =
      "vault: true\noutputs:\n  url: {}\n  short: {schema: {type: string, maxLength: 3}}\n"
      "secrets:\n  db: {required: true}\n";
  return DeploymentCommand(image, kDocument, [](v1::Command::Deployment& deployment) {
    auto& secret = *deployment.add_secrets();
    secret.set_name("db");
    secret.set_secret("prod/db");
    secret.set_version(3);
  });
}

// Returns the files below the folder that contain the text.
std::vector<std::string> FilesWith(const std::string& folder, const std::string& text) {
  std::vector<std::string> found;
  const auto options = fs::directory_options::skip_permission_denied;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, options, error), end; it != end;
       it.increment(error)) {
    std::error_code ignored;
    if (!it->is_regular_file(ignored) || it->is_symlink(ignored)) continue;
    std::ifstream file(it->path(), std::ios::binary);
    const std::string content((std::istreambuf_iterator<char>(file)), {});
    if (content.find(text) != std::string::npos) found.push_back(it->path());
  }
  return found;
}

// The part of an agent that is killed: see KillAgentOf.
TEST(KilledAgent, RunsAContainer) { RunKilledAgent(DeploymentOf, SecretsOf); }

class JobSecretsTest : public JobContainerFixture {
 protected:
  JobSecretsTest() : JobContainerFixture(DeploymentOf, SecretsOf) {
    Source() = TestSource();
    SecretsOf(folder_).folders->Remove(kJob).IgnoreError();
  }

  JobPlan Plan(const std::string& script) {
    JobPlan plan = PlanOf(docker_->image(), script);
    plan.deployment = std::string(32, 'd');
    return plan;
  }
  std::string Folder() const { return SecretsOf(folder_).folders->PathOf(kJob).value(); }
  void Go() const { std::ofstream(absl::StrCat(folder_, "/", kJob, "/state/go")) << "go"; }
  void ExpectNothingLeft() const { EXPECT_FALSE(fs::exists(Folder())); }
};

TEST_F(JobSecretsTest, ContainerReadsItsSecretsAndNoDiskHasThem) {
  Start(
      Plan(absl::StrCat("stat -c '%a %u' /secrets /secrets/db; wc -c </secrets/db;"
                        "grep -c hunter /secrets/db; echo x 2>/dev/null >/secrets/x || echo ro;",
                        kAwaitGo)));
  AwaitRunning();
  EXPECT_TRUE(fs::exists(Folder() + "/db"));
  const auto info = engine_.GetInfo();
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(FilesWith(info->data_root, "hunter22"), std::vector<std::string>());
  EXPECT_EQ(FilesWith(folder_, "hunter22"), std::vector<std::string>());
  Go();
  const Records all = Finish();
  EXPECT_EQ(all.final.exit_code(), 0) << all.final.ShortDebugString();
  if (geteuid() == 0) {
    EXPECT_EQ(all.out, "500 65532\n400 65532\n18\n1\nro\n");
  }
  ExpectNothingLeft();
}

TEST_F(JobSecretsTest, ValuesAreMaskedInTheOutput) {
  const Records all = Run(Plan(
      "cat /secrets/db; cat /secrets/db >&2; base64 </secrets/db; head -c 9 /secrets/db; sleep 1;"
      "tail -c +10 /secrets/db; printf 'end hunter'"));
  EXPECT_EQ(all.err, "*****************\n");
  EXPECT_THAT(all.out, Not(HasSubstr("hunter22")));
  EXPECT_THAT(all.out, ::testing::StartsWith("*****************\n********************"));
  EXPECT_THAT(all.out, ::testing::EndsWith("*****************\nend hunter"));
  EXPECT_EQ(all.final.exit_code(), 0);
  EXPECT_EQ(all.final.reason(), "");
  ExpectNothingLeft();
}

TEST_F(JobSecretsTest, NothingStartsWithoutTheSecretsOfTheCommand) {
  Source().failure = errors::SecretUnavailable("the relay cannot be reached");
  Records all = Run(Plan("echo ran"));
  EXPECT_EQ(all.out, "");
  EXPECT_EQ(all.started, 0);
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_FAILED);
  EXPECT_EQ(all.final.reason(), "SECRET_UNAVAILABLE");
  EXPECT_THAT(all.final.detail(), HasSubstr("the relay cannot be reached"));
  EXPECT_FALSE(job_->has_started());
  ExpectNothingLeft();
}

TEST_F(JobSecretsTest, OtherSecretsThanThoseOfTheCommandAreRefused) {
  Source().secret = "prod/other";
  const Records all = Run(Plan("echo ran"));
  EXPECT_EQ(all.started, 0);
  EXPECT_EQ(all.final.reason(), "SECRET_UNAVAILABLE");
  EXPECT_THAT(all.final.detail(), HasSubstr("other secrets"));
  ExpectNothingLeft();
}

TEST_F(JobSecretsTest, OutputFileWithAValueIsAFailure) {
  const Records all = Run(Plan("cat /secrets/db >/state/outputs/url"));
  EXPECT_EQ(all.outputs.size(), 0u);
  EXPECT_EQ(all.final.reason(), "OUTPUTS_INVALID");
  EXPECT_THAT(all.final.detail(), HasSubstr("url: contains the value of a secret"));
  ExpectNothingLeft();
}

// The schema has a fault for the file, which would show its beginning.
TEST_F(JobSecretsTest, OutputFileWithALongValueIsNotShown) {
  Source().text = "begin-" + std::string(90, 'x') + "-end";
  const Records all = Run(Plan("cat /secrets/db >/state/outputs/short"));
  EXPECT_EQ(all.final.reason(), "OUTPUTS_INVALID");
  EXPECT_EQ(all.final.detail().find("begin"), std::string::npos) << all.final.detail();
  EXPECT_THAT(all.final.detail(), HasSubstr("short: contains the value of a secret"));
  ExpectNothingLeft();
}

// The restarted agent reads how often the killed one was asked.
TEST_F(JobSecretsTest, ReadsOfSecretsAreReportedAlsoIfTheOutcomeIsReplaced) {
  KillAgentOf(absl::StrCat("echo ready;", kAwaitGo, "cat /secrets/db >/state/outputs/url"));
  std::ofstream(Folder() + "/vault.reads") << "db 2\n";
  Recover();
  Start(job_->container()->plan);
  Go();
  const Records all = Finish();
  EXPECT_EQ(all.final.reason(), "OUTPUTS_INVALID");
  EXPECT_THAT(all.final.detail(), HasSubstr("url: contains the value of a secret"));
  EXPECT_THAT(all.final.detail(), HasSubstr("reads of secrets: db 2"));
}

TEST_F(JobSecretsTest, KilledContainerLeavesNothing) {
  JobPlan plan = Plan("trap '' TERM; sleep 100");
  plan.time_limit = absl::Seconds(2);
  const Records all = Run(plan);
  EXPECT_EQ(all.final.outcome(), v1::JOB_OUTCOME_TIMED_OUT);
  ExpectNothingLeft();
}

TEST_F(JobSecretsTest, ContainerOfAKilledAgentKeepsItsSecretsAndTheyAreMasked) {
  KillAgentOf(absl::StrCat("echo ready; cat /secrets/db;", kAwaitGo, "cat /secrets/db"));
  EXPECT_TRUE(fs::exists(Folder() + "/db"));
  Recover();
  Start(job_->container()->plan);
  Go();
  const Records all = Finish();
  EXPECT_EQ(all.out, "ready\n*****************\n*****************\n");
  EXPECT_EQ(all.final.exit_code(), 0);
  EXPECT_EQ(all.final.reason(), "");
  EXPECT_EQ(Source().fetches, 0) << "they are not fetched again";
  ExpectNothingLeft();
}

// As after a restart of the machine.
TEST_F(JobSecretsTest, OutputIsNotRecordedIfTheSecretsAreLost) {
  KillAgentOf(absl::StrCat("echo ready;", kAwaitGo, "cat /secrets/db"));
  Recover();
  ASSERT_TRUE(SecretsOf(folder_).folders->Remove(kJob).ok());
  Start(job_->container()->plan);
  Go();
  const Records all = Finish();
  EXPECT_THAT(all.out, Not(HasSubstr("hunter22")));
  EXPECT_EQ(all.final.reason(), "CONTAINER_OUTPUT_LOST") << all.final.ShortDebugString();
  ExpectNothingLeft();
}

}  // namespace
}  // namespace muster
