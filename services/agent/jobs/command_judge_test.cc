#include "services/agent/jobs/command_judge.h"

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/agent/jobs/job_plan.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"
#include "services/common/templates/template_source.h"
#include "testing/fixtures/test_commands.h"

namespace muster {
namespace {

constexpr char kNode[] = "n1";

class CommandJudgeTest : public ::testing::Test {
 protected:
  CommandJudgeTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    SetPolicy("commands: [{argv: ['**']}]");
    Open();
  }

  void Open() {
    auto judge =
        CommandJudge::Open({folder_, kTestFleet, kNode, commands_.authority().certificate()});
    ASSERT_TRUE(judge.ok()) << judge.status();
    judge_ = *std::move(judge);
  }

  void SetPolicy(std::string_view text) {
    ASSERT_TRUE(WriteFileAtomically(folder_ + "/policy.yaml", text).ok());
  }

  Verdict Judge(const v1::JobCommand& sent) {
    return judge_->Judge(sent.command(), TargetFor(sent, kNode), absl::Now());
  }
  Verdict Judge(const v1::Command& command, const std::string& signer = "alice") {
    return Judge(commands_.ForNode(command, kNode, signer));
  }

  static void ExpectForged(const Verdict& verdict, const std::string& reason) {
    EXPECT_EQ(ReasonOf(verdict.status), reason);
    EXPECT_FALSE(verdict.genuine);
  }
  static void ExpectRefused(const Verdict& verdict, const std::string& reason) {
    EXPECT_EQ(ReasonOf(verdict.status), reason);
    EXPECT_TRUE(verdict.genuine);
  }

  static v1::Command True() { return TestCommands::Exec({"/bin/true"}); }
  // A command that is valid between these hours from now.
  static v1::Command Between(int from, int to) {
    v1::Command command = True();
    command.mutable_not_before()->set_seconds(absl::ToUnixSeconds(absl::Now() + absl::Hours(from)));
    command.mutable_not_after()->set_seconds(absl::ToUnixSeconds(absl::Now() + absl::Hours(to)));
    return command;
  }

  const std::string folder_ = ::testing::TempDir() + "/command-judge";
  TestCommands commands_;
  std::unique_ptr<CommandJudge> judge_;
};

TEST_F(CommandJudgeTest, GenuineCommandHasItsRule) {
  const Verdict verdict = Judge(True());
  EXPECT_EQ(verdict.status, absl::OkStatus());
  EXPECT_TRUE(verdict.genuine);
  EXPECT_EQ(verdict.rule.argv, std::vector<std::string>{"/bin/true"});
}

TEST_F(CommandJudgeTest, CommandWithAChangedByteIsRefused) {
  const v1::JobCommand good = commands_.ForNode(True(), kNode);
  for (const size_t place :
       {size_t{0}, good.command().command().size() / 2, good.command().command().size() - 1}) {
    v1::JobCommand sent = good;
    (*sent.mutable_command()->mutable_command())[place] ^= 1;
    ExpectForged(Judge(sent), "COMMAND_REFUSED");
  }
  v1::JobCommand unsigned_command = good;
  unsigned_command.mutable_command()->clear_signature();
  ExpectForged(Judge(unsigned_command), "COMMAND_REFUSED");
}

TEST_F(CommandJudgeTest, CommandOfAnotherAuthorityIsRefused) {
  ExpectForged(Judge(TestCommands().ForNode(True(), kNode)), "COMMAND_REFUSED");
}

TEST_F(CommandJudgeTest, CommandForAnotherNodeIsRefused) {
  v1::Command command = True();
  TestCommands::SetTargets({"n2", "n3"}, &command);
  ExpectForged(Judge(command), "TARGET_REFUSED");
  ExpectForged(Judge(commands_.ForNode(True(), "n2")), "TARGET_REFUSED");
}

TEST_F(CommandJudgeTest, CommandOutsideItsTimeIsRefused) {
  ExpectForged(Judge(Between(-2, -1)), "COMMAND_EXPIRED");
  ExpectRefused(Judge(Between(1, 2)), "COMMAND_EARLY");
}

TEST_F(CommandJudgeTest, EarlyCommandForAnotherNodeOrOfARevokedSignerIsNotGenuine) {
  EXPECT_TRUE(judge_->ReceiveRevocations(commands_.Revoke("mallory", 3)).ok());
  ExpectForged(Judge(commands_.ForNode(Between(1, 2), "n2")), "TARGET_REFUSED");
  ExpectForged(Judge(Between(1, 2), "mallory"), "OPERATOR_REVOKED");
}

TEST_F(CommandJudgeTest, CommandOfRevokedOperatorIsRefusedAlsoAfterARestart) {
  EXPECT_TRUE(judge_->ReceiveRevocations(commands_.Revoke("mallory", 3)).ok());
  EXPECT_TRUE(judge_->ReceiveRevocations(commands_.Revoke("alice", 2)).ok());  // older
  EXPECT_FALSE(judge_->ReceiveRevocations(TestCommands().Revoke("alice", 9)).ok());
  for (int restarts = 0; restarts < 2; ++restarts) {
    EXPECT_EQ(judge_->revocations_version(), 3);
    ExpectForged(Judge(True(), "mallory"), "OPERATOR_REVOKED");
    EXPECT_EQ(Judge(True()).status, absl::OkStatus());
    Open();
  }
}

TEST_F(CommandJudgeTest, DamagedRevocationsRefuseCommandsUntilTheyAreReceived) {
  const std::string foreign = TestCommands().Revoke("mallory", 3).SerializeAsString();
  for (const std::string& content : {std::string(), std::string("damaged"), foreign}) {
    ASSERT_TRUE(WriteFileAtomically(folder_ + "/command-revocations", content).ok());
    for (int restarts = 0; restarts < 2; ++restarts) {
      Open();
      EXPECT_EQ(judge_->revocations_version(), 0) << "the relay would not send it";
      ExpectRefused(Judge(True()), "REVOCATIONS_DAMAGED");
    }
    EXPECT_FALSE(judge_->ReceiveRevocations(TestCommands().Revoke("alice", 9)).ok());
    ExpectRefused(Judge(True()), "REVOCATIONS_DAMAGED");
    EXPECT_TRUE(judge_->ReceiveRevocations(commands_.Revoke("mallory", 3)).ok());
    for (int restarts = 0; restarts < 2; ++restarts) {
      EXPECT_EQ(Judge(True()).status, absl::OkStatus());
      ExpectForged(Judge(True(), "mallory"), "OPERATOR_REVOKED");
      Open();
    }
  }
}

TEST_F(CommandJudgeTest, CommandOutsideThePolicyIsRefusedWithArgvAndFile) {
  SetPolicy("commands: [{argv: [/bin/true]}]");
  const Verdict verdict = Judge(TestCommands::Exec({"/bin/ls", "-l"}));
  ExpectRefused(verdict, "POLICY_REFUSED");
  const std::string message(verdict.status.message());
  EXPECT_NE(message.find("/bin/ls -l"), std::string::npos) << message;
  EXPECT_NE(message.find(folder_ + "/policy.yaml"), std::string::npos) << message;
  SetPolicy("commands: [");
  ExpectRefused(Judge(True()), "POLICY_UNUSABLE");
  std::filesystem::remove(folder_ + "/policy.yaml");
  ExpectRefused(Judge(True()), "POLICY_REFUSED");
}

TEST_F(CommandJudgeTest, VariableMustBeAdmittedByTheRule) {
  SetPolicy("commands: [{argv: [/bin/true], environment: [GREETING]}]");
  v1::Command command = True();
  command.add_environment()->set_name("GREETING");
  EXPECT_EQ(Judge(command).status, absl::OkStatus());
  command.mutable_environment(0)->set_name("LD_PRELOAD");
  ExpectRefused(Judge(command), "POLICY_REFUSED");
}

class DeploymentJudgeTest : public CommandJudgeTest {
 protected:
  DeploymentJudgeTest() {
    SetPolicy("containers: [{images: ['a@*'], actions: [deployment], memory: 64MiB}]");
  }

  static v1::Command Deploy() {
    v1::Command command = TestCommands::Exec({});
    command.set_action("deployment");
    command.mutable_container()->set_image(kImage);
    v1::Command::Deployment& deployment = *command.mutable_container()->mutable_deployment();
    deployment.set_deployment(std::string(32, 'd'));
    deployment.set_action("deploy");
    deployment.set_type_document(absl::StrCat(
        "apiVersion: muster/v1\nkind: TemplateType\nname: t\nversion: 1.0.0\ncontract: 1\nimage: ",
        kImage,
        "\nlimits: {memory: 1GiB, processes: 3}\n"
        "parameters: {size: {schema: {type: integer}, required: true}}\n"));
    deployment.set_parameters(R"({"size": 3})");
    return command;
  }

  static inline const std::string kImage = "a@sha256:" + std::string(64, 'a');
};

TEST_F(DeploymentJudgeTest, RuleHasTheLimitsOfPolicyAndDocuments) {
  const Verdict verdict = Judge(Deploy());
  EXPECT_EQ(verdict.status, absl::OkStatus());
  EXPECT_EQ(verdict.rule.container.memory, int64_t{64} << 20);
  EXPECT_EQ(verdict.rule.container.processes, 3);
}

TEST_F(DeploymentJudgeTest, UnresolvableDeploymentIsRefused) {
  v1::Command command = Deploy();
  command.mutable_container()->mutable_deployment()->set_parameters(R"({"size": "x"})");
  ExpectRefused(Judge(command), "INVALID_PARAMETERS");
  command = Deploy();
  command.mutable_container()->mutable_deployment()->set_type_document("{}");
  ExpectRefused(Judge(command), "INVALID_DOCUMENT");
}

TEST_F(DeploymentJudgeTest, ADeploymentWithFilesIsAdmittedByItsOwnAction) {
  v1::Command command = Deploy();
  v1::Command::Deployment& deployment = *command.mutable_container()->mutable_deployment();
  deployment.mutable_type_document()->append("adHoc: true\ncommand: [sh, /files/main.sh]\n");
  deployment.add_files()->set_path("main.sh");
  ExpectRefused(Judge(command), "POLICY_REFUSED");
  SetPolicy("containers: [{images: ['a@*'], argv: [sh, '/files/*'], actions: [ad-hoc]}]");
  const Verdict verdict = Judge(command);
  EXPECT_EQ(verdict.status, absl::OkStatus());
  EXPECT_THAT(verdict.rule.argv, ::testing::ElementsAre("sh", "/files/main.sh"));
  SetPolicy("containers: [{images: ['a@*'], argv: [bash, '**'], actions: [ad-hoc]}]");
  ExpectRefused(Judge(command), "POLICY_REFUSED");
  deployment.mutable_files(0)->set_path("/main.sh");
  ExpectRefused(Judge(command), "INVALID_FILES");
}

TEST_F(DeploymentJudgeTest, FilesThatAreNotInTheCommandAreBoundedByThePolicy) {
  v1::Command command = Deploy();
  v1::Command::Deployment& deployment = *command.mutable_container()->mutable_deployment();
  deployment.mutable_type_document()->append("adHoc: true\ncommand: [sh, /files/main.sh]\n");
  v1::Command::File& file = *deployment.add_files();
  file.set_path("main.sh");
  file.set_sha256(std::string(32, 'x'));
  file.set_size(int64_t{1} << 20);
  SetPolicy("containers: [{images: ['a@*'], actions: [ad-hoc]}]");
  EXPECT_EQ(Judge(command).status, absl::OkStatus());
  SetPolicy("containers: [{images: ['a@*'], actions: [ad-hoc], max_files: 1MiB}]");
  EXPECT_EQ(Judge(command).status, absl::OkStatus());
  file.set_size(file.size() + 1);
  ExpectRefused(Judge(command), "FILES_TOO_LARGE");
}

class BuildJudgeTest : public CommandJudgeTest {
 protected:
  BuildJudgeTest() {
    SetPolicy(
        "containers: [{images: ['a@*'], actions: [build], repositories: ['r.example/web*']}]");
  }

  static v1::Command Build() {
    v1::Command command = TestCommands::Exec({});
    TestCommands::SetTargets({kNode}, &command);
    command.set_action("build");
    command.mutable_container()->set_image(kImage);
    v1::Command::Build& build = *command.mutable_container()->mutable_build();
    build.set_build(std::string(32, 'd'));
    build.set_type_document(absl::StrCat(
        "apiVersion: muster/v1\nkind: TemplateType\nname: t\nversion: 1.0.0\ncontract: 1\nimage: ",
        kImage, "\nbuild: {folder: /work}\n"));
    build.set_template_document(
        "apiVersion: muster/v1\nkind: Template\nname: w\nversion: 1.0.0\ntype: t@1.0.0\n");
    build.add_files()->set_path("index.html");
    build.mutable_source()->set_kind("folder");
    build.mutable_source()->set_sha256(SourceDigest(build.files()));
    build.set_repository("r.example/web");
    return command;
  }

  static inline const std::string kImage = "a@sha256:" + std::string(64, 'a');
};

TEST_F(BuildJudgeTest, BuildIsAdmittedForItsBaseAndRepository) {
  const Verdict verdict = Judge(Build());
  EXPECT_EQ(verdict.status, absl::OkStatus());
  const JobPlan plan = MakeJobPlan(commands_.ForNode(Build(), kNode), verdict);
  EXPECT_TRUE(plan.is_build);
  EXPECT_EQ(plan.image, kImage);
  v1::Command command = Build();
  command.mutable_container()->mutable_build()->set_repository("r.example/other");
  ExpectRefused(Judge(command), "POLICY_REFUSED");
  SetPolicy("containers: [{images: ['b@*'], actions: [build], repositories: ['*']}]");
  ExpectRefused(Judge(Build()), "POLICY_REFUSED");
  SetPolicy("containers: [{images: ['*'], actions: [deployment, container, ad-hoc]}]");
  ExpectRefused(Judge(Build()), "POLICY_REFUSED");
}

TEST_F(BuildJudgeTest, InvalidContentIsRefused) {
  v1::Command command = Build();
  command.mutable_container()->set_image("c@sha256:" + std::string(64, 'a'));
  ExpectRefused(Judge(command), "INVALID_DOCUMENT");
  command = Build();
  command.mutable_container()->mutable_build()->mutable_files(0)->set_content("other");
  ExpectRefused(Judge(command), "INVALID_BUILD");
  command = Build();
  command.mutable_container()->mutable_build()->mutable_files(0)->set_path("../index.html");
  ExpectRefused(Judge(command), "INVALID_FILES");
}

}  // namespace
}  // namespace muster
