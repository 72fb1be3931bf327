// Builds from the plan to the version of the template, with a scripted root relay.
#include <grpcpp/grpcpp.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/v1/audit.pb.h"
#include "muster/v1/templates.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/base/random_id.h"
#include "services/common/identity/signed_command.h"
#include "services/common/rpc/proto_time.h"
#include "services/common/templates/build_content.h"
#include "services/common/templates/files.h"
#include "services/common/templates/template_source.h"
#include "services/jobs/testing/jobs_fixture.h"
#include "testing/fixtures/test_call.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr char kRepository[] = "registry.example/templates/web";

std::string Document(const std::string& version, const std::string& more = "") {
  return absl::StrCat("apiVersion: muster/v1\nkind: Template\nname: web\nversion: ", version,
                      "\ntype: site@1.0.0\n", more);
}

std::string Image(char digit) {
  return absl::StrCat(kRepository, "@sha256:", std::string(64, digit));
}

class BuildTest : public testing::JobsFixture {
 protected:
  BuildTest() {
    EXPECT_TRUE(
        CreateType(absl::StrCat("apiVersion: muster/v1\nkind: TemplateType\nname: site\nversion: "
                                "1.0.0\ncontract: 1\nimage: registry.example/types/site@sha256:",
                                std::string(64, '1'), "\nbuild: {folder: /work}\n"))
            .ok());
  }

  static v1::PlanDeploymentRequest Wanted(const std::string& document,
                                          const std::string& content = "hello") {
    v1::PlanDeploymentRequest wanted;
    v1::Command::Build& build = *wanted.mutable_build();
    build.set_template_document(document);
    v1::Command::File& file = *build.add_files();
    file.set_path("index.html");
    file.set_content(content);
    build.mutable_source()->set_kind("zip");
    build.mutable_source()->set_sha256(SourceDigest(build.files()));
    build.set_repository(kRepository);
    return wanted;
  }

  // With the files of another version.
  static v1::PlanDeploymentRequest WantedFrom(const std::string& version, const std::string& from) {
    v1::PlanDeploymentRequest wanted;
    wanted.mutable_build()->set_template_document(Document(version));
    wanted.mutable_build()->set_repository(kRepository);
    wanted.set_build_from(from);
    return wanted;
  }

  v1::CreateDeploymentRequest BuildRequest(const v1::PlanDeploymentRequest& wanted) {
    const auto plan = Plan(wanted);
    EXPECT_TRUE(plan.ok()) << plan.status();
    v1::Command command;
    command.set_action(std::string(kBuildAction));
    command.mutable_container()->set_image(plan->image());
    *command.mutable_container()->mutable_build() = plan->build();
    command.mutable_container()->mutable_build()->set_build(RandomHex(16));
    command.set_job(RandomHex(16));
    ToProto(absl::Now(), command.mutable_not_before());
    ToProto(absl::Now() + absl::Minutes(5), command.mutable_not_after());
    command.mutable_time_limit()->set_seconds(60);
    return SignedRequest(std::move(command), {"builder"});
  }

  v1::Deployment Begin(const v1::PlanDeploymentRequest& wanted) {
    const auto created = Create(BuildRequest(wanted));
    EXPECT_TRUE(created.ok()) << created.status();
    EXPECT_TRUE(relay_.AwaitJob(created->job()));
    return *created;
  }

  // The node reports this image, and the job ends.
  v1::Deployment End(const v1::Deployment& build, const std::string& image,
                     v1::DeploymentState state, bool verified = true) {
    v1::JobRecord outputs;
    outputs.set_node("builder");
    outputs.set_sequence(1);
    auto& output = *outputs.mutable_outputs()->add_outputs();
    output.set_name("image");
    output.set_value(absl::StrCat("\"", image, "\""));
    relay_.AddRecord(build.job(), outputs);
    v1::JobRecord final;
    final.set_node("builder");
    final.set_sequence(2);
    final.mutable_final()->set_outcome(v1::JOB_OUTCOME_EXITED);
    final.mutable_final()->set_records_verified(verified);
    relay_.AddRecord(build.job(), final);
    relay_.End(build.job(), v1::JOB_STATE_ENDED);
    return AwaitState(build.deployment(), state);
  }

  absl::StatusOr<v1::Template> GetTemplate(const std::string& reference) {
    v1::GetTemplateRequest request;
    request.set_template_(reference);
    return testing::CallUnary<v1::TemplateService>(
        Connect(fleet_.admin()), &v1::TemplateService::Stub::GetTemplate, request);
  }

  std::string PlanReason(const v1::PlanDeploymentRequest& wanted) {
    return ReasonOf(Plan(wanted).status());
  }
};

TEST_F(BuildTest, SuccessCreatesTheVersionWithItsImage) {
  const v1::Deployment created = Begin(Wanted(Document("1.4.0")));
  EXPECT_EQ(created.template_(), "web@1.4.0");
  EXPECT_EQ(created.action(), "build");
  EXPECT_EQ(ReasonOf(GetTemplate("web").status()), "TEMPLATE_NOT_FOUND") << "it is not built yet";
  const v1::Deployment ended = End(created, Image('a'), v1::DEPLOYMENT_STATE_SUCCEEDED);
  EXPECT_EQ(ended.build().image(), Image('a'));
  const auto version = GetTemplate("web");
  ASSERT_TRUE(version.ok()) << version.status();
  EXPECT_EQ(version->image(), Image('a'));
  EXPECT_EQ(version->source().kind(), "zip");
  EXPECT_EQ(version->source().sha256(), created.build().source().sha256());
  EXPECT_EQ(version->created_by(), created.created_by());
  v1::PlanDeploymentRequest deployment;
  deployment.set_template_("web");
  const auto plan = Plan(deployment);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->image(), Image('a')) << "a deployment runs the built image";
  StopService();
  StartService();
  EXPECT_EQ(GetTemplate("web@1.4.0")->image(), Image('a'));
}

TEST_F(BuildTest, SameSourceIsNotBuiltAgain) {
  EXPECT_EQ(Plan(Wanted(Document("1.4.0")))->built(), "");
  End(Begin(Wanted(Document("1.4.0"))), Image('a'), v1::DEPLOYMENT_STATE_SUCCEEDED);
  v1::PlanDeploymentRequest again = Wanted(Document("1.4.0"));
  again.mutable_build()->mutable_source()->set_kind("folder");
  EXPECT_EQ(Plan(again)->built(), "web@1.4.0") << "the same files";
  EXPECT_EQ(PlanReason(Wanted(Document("1.4.0"), "other")), "VERSION_EXISTS");
  EXPECT_EQ(PlanReason(Wanted(Document("1.4.0", "limits: {cpus: 1}\n"))), "VERSION_EXISTS");
  EXPECT_EQ(Plan(Wanted(Document("1.5.0"), "other"))->built(), "");
}

TEST_F(BuildTest, LaterBuildOfTheSameSourceHasTheStoredImage) {
  const v1::Deployment first = Begin(Wanted(Document("1.4.0")));
  const v1::Deployment second = Begin(Wanted(Document("1.4.0")));
  const v1::Deployment third = Begin(Wanted(Document("1.4.0"), "other"));
  End(first, Image('a'), v1::DEPLOYMENT_STATE_SUCCEEDED);
  EXPECT_EQ(End(second, Image('b'), v1::DEPLOYMENT_STATE_SUCCEEDED).build().image(), Image('a'));
  const v1::Deployment other = End(third, Image('c'), v1::DEPLOYMENT_STATE_FAILED);
  EXPECT_THAT(other.problem(), HasSubstr("template web@1.4.0 exists with other content"));
  EXPECT_EQ(GetTemplate("web@1.4.0")->image(), Image('a'));
}

TEST_F(BuildTest, ImageThatTheNodeDidNotSignCreatesNoVersion) {
  const v1::Deployment forged =
      End(Begin(Wanted(Document("1.4.0"))), Image('a'), v1::DEPLOYMENT_STATE_FAILED,
          /*verified=*/false);
  EXPECT_THAT(forged.problem(), HasSubstr("the node has signed no image"));
  const v1::Deployment other =
      End(Begin(Wanted(Document("1.4.0"))), "registry.example/other@sha256:" + std::string(64, 'a'),
          v1::DEPLOYMENT_STATE_FAILED);
  EXPECT_THAT(other.problem(), HasSubstr("of its repository"));
  EXPECT_EQ(ReasonOf(GetTemplate("web").status()), "TEMPLATE_NOT_FOUND");
}

TEST_F(BuildTest, FailedBuildCreatesNoVersion) {
  const v1::Deployment created = Begin(Wanted(Document("1.4.0")));
  v1::JobRecord final;
  final.set_node("builder");
  final.set_sequence(1);
  final.mutable_final()->set_outcome(v1::JOB_OUTCOME_FAILED);
  final.mutable_final()->set_reason("IMAGE_PUSH_FAILED");
  final.mutable_final()->set_records_verified(true);
  relay_.AddRecord(created.job(), final);
  relay_.End(created.job(), v1::JOB_STATE_ENDED);
  AwaitState(created.deployment(), v1::DEPLOYMENT_STATE_FAILED);
  EXPECT_EQ(ReasonOf(GetTemplate("web").status()), "TEMPLATE_NOT_FOUND");
}

TEST_F(BuildTest, InvalidBuildsAreRefusedAtThePlan) {
  EXPECT_EQ(PlanReason(Wanted("x")), "INVALID_DOCUMENT");
  EXPECT_EQ(PlanReason(Wanted("apiVersion: muster/v1\nkind: Template\nname: web\n"
                              "version: 1.4.0\ntype: none@1.0.0\n")),
            "TYPE_NOT_FOUND");
  EXPECT_TRUE(CreateType(TypeDocument("1.0.0")).ok());
  EXPECT_EQ(PlanReason(Wanted(TemplateDocument("1.0.0"))), "TYPE_NOT_BUILDABLE");
  v1::PlanDeploymentRequest wanted = Wanted(Document("1.4.0"));
  wanted.mutable_build()->set_repository("web");
  EXPECT_EQ(PlanReason(wanted), "INVALID_BUILD");
  wanted = Wanted(Document("1.4.0"));
  wanted.set_template_("web");
  EXPECT_EQ(PlanReason(wanted), "INVALID_BUILD");
  wanted = Wanted(Document("1.4.0"));
  wanted.mutable_build()->clear_files();
  EXPECT_EQ(PlanReason(wanted), "INVALID_FILES");
}

TEST_F(BuildTest, StoredFileMustHaveBeenUploaded) {
  v1::PlanDeploymentRequest wanted = Wanted(Document("1.4.0"));
  v1::Command::File& file = *wanted.mutable_build()->mutable_files(0);
  file.set_size(SizeOf(file));
  file.set_sha256(DigestOf(file));
  file.clear_content();
  EXPECT_EQ(ReasonOf(Create(BuildRequest(wanted)).status()), "CONTENT_MISSING");
}

TEST_F(BuildTest, SignedContentMustBeThatOfAPlan) {
  const auto request = BuildRequest(Wanted(Document("1.4.0")));
  const auto reason_with = [&](auto change) {
    v1::Command command = CommandOf(request);
    change(*command.mutable_container());
    return ReasonOf(Create(SignedRequest(std::move(command), {"builder"})).status());
  };
  EXPECT_EQ(reason_with([](auto& c) { c.set_image(Image('a')); }), "INVALID_COMMAND");
  EXPECT_EQ(
      reason_with([](auto& c) { c.mutable_build()->mutable_template_document()->append(" "); }),
      "INVALID_COMMAND");
  EXPECT_EQ(reason_with([](auto& c) { c.mutable_build()->mutable_files(0)->set_content("x"); }),
            "INVALID_BUILD");
  v1::CreateDeploymentRequest with_source = request;
  with_source.set_retry_of(RandomHex(16));
  EXPECT_EQ(ReasonOf(Create(with_source).status()), "INVALID_COMMAND");
}

TEST_F(BuildTest, BuildIsNeitherRetriedNorDestroyed) {
  const v1::Deployment ended =
      End(Begin(Wanted(Document("1.4.0"))), Image('a'), v1::DEPLOYMENT_STATE_SUCCEEDED);
  v1::PlanDeploymentRequest retry;
  retry.set_retry_of(ended.deployment());
  EXPECT_EQ(PlanReason(retry), "NOT_RETRIABLE");
  v1::PlanDeploymentRequest destruction;
  destruction.set_destroys(ended.deployment());
  EXPECT_EQ(PlanReason(destruction), "NOT_RETRIABLE");
}

TEST_F(BuildTest, FilesOfAVersionAreKnownAndBuiltAgain) {
  const v1::Deployment first =
      End(Begin(Wanted(Document("1.4.0"))), Image('a'), v1::DEPLOYMENT_STATE_SUCCEEDED);
  const auto version = GetTemplate("web@1.4.0");
  ASSERT_TRUE(version.ok()) << version.status();
  ASSERT_EQ(version->files_size(), 1);
  EXPECT_EQ(version->files(0).path(), "index.html");
  EXPECT_EQ(version->files(0).sha256(), first.files(0).sha256());

  const v1::PlanDeploymentRequest again = WantedFrom("1.5.0", "web@1.4");
  const auto plan = Plan(again);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->build().files_size(), 1);
  EXPECT_EQ(plan->build().files(0).content(), "hello");
  EXPECT_EQ(plan->build().source().kind(), "zip");
  EXPECT_EQ(plan->built(), "");
  End(Begin(again), Image('b'), v1::DEPLOYMENT_STATE_SUCCEEDED);
  EXPECT_EQ(GetTemplate("web@1.5.0")->source().sha256(), version->source().sha256());
}

TEST_F(BuildTest, OnlyFilesOfAStoredBuildAreBuiltAgain) {
  EXPECT_EQ(PlanReason(WantedFrom("1.5.0", "web@1.4")), "TEMPLATE_NOT_FOUND");
  ASSERT_TRUE(CreateTemplate(Document("1.4.0")).ok());
  EXPECT_EQ(PlanReason(WantedFrom("1.5.0", "web@1.4")), "TEMPLATE_FILES_NOT_STORED");
  v1::PlanDeploymentRequest wanted = Wanted(Document("1.5.0"));
  wanted.set_build_from("web@1.4");
  EXPECT_EQ(PlanReason(wanted), "INVALID_BUILD");
  wanted.clear_build();
  EXPECT_EQ(PlanReason(wanted), "INVALID_BUILD");
}

TEST_F(BuildTest, OnlyABuildSetsAnImage) {
  const v1::PlanDeploymentRequest wanted = Wanted(Document("1.4.0"));
  const std::string document = BuiltDocument(Plan(wanted)->build(), Image('a')).value();
  EXPECT_EQ(ReasonOf(CreateTemplate(document).status()), "INVALID_DOCUMENT");
}

TEST_F(BuildTest, CancelledBuildCreatesNoVersion) {
  const v1::Deployment created = Begin(Wanted(Document("1.4.0")));
  EXPECT_TRUE(Cancel(created.deployment()).ok());
  relay_.End(created.job(), v1::JOB_STATE_CANCELLED);
  AwaitState(created.deployment(), v1::DEPLOYMENT_STATE_CANCELLED);
  EXPECT_EQ(ReasonOf(GetTemplate("web").status()), "TEMPLATE_NOT_FOUND");
}

TEST_F(BuildTest, BuildAndItsVersionAreInTheAuditLog) {
  const v1::Deployment build = Begin(Wanted(Document("1.4.0")));
  End(build, Image('a'), v1::DEPLOYMENT_STATE_SUCCEEDED);
  const auto versions = AwaitAuditRecords("web@1.4.0", 1);
  ASSERT_EQ(versions.size(), 1u);
  EXPECT_EQ(versions[0].kind(), v1::AUDIT_KIND_TEMPLATE);
  EXPECT_EQ(versions[0].actor(), build.created_by());
  EXPECT_THAT(versions[0].text(), HasSubstr(absl::StrCat("built by ", build.deployment())));
  const auto builds = AwaitAuditRecords(build.deployment(), 1);
  ASSERT_EQ(builds.size(), 1u);
  EXPECT_EQ(builds[0].kind(), v1::AUDIT_KIND_DEPLOYMENT);
  EXPECT_THAT(builds[0].text(), HasSubstr("web@1.4.0, a build, for 1 node"));
}

}  // namespace
}  // namespace muster
