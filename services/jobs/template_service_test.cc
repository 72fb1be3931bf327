// The RPCs of template types and templates over real mutual TLS.
#include <grpcpp/grpcpp.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "muster/v1/templates.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/rpc/status.h"
#include "services/common/store/sqlite/local_database.h"
#include "services/jobs/document_store.h"
#include "services/jobs/jobs_schema.h"
#include "services/jobs/testing/jobs_fixture.h"
#include "testing/fixtures/test_call.h"

namespace muster {
namespace {

class TemplateServiceTest : public testing::JobsFixture {
 protected:
  absl::StatusOr<v1::TemplateType> GetType(const std::string& reference) {
    grpc::ClientContext context;
    v1::GetTemplateTypeRequest request;
    request.set_type(reference);
    v1::TemplateType type;
    const grpc::Status status = v1::TemplateService::NewStub(Connect(fleet_.admin()))
                                    ->GetTemplateType(&context, request, &type);
    if (!status.ok()) return FromGrpc(status);
    return type;
  }

  absl::StatusOr<v1::ListTemplateTypesResponse> ListTypes(
      const v1::ListTemplateTypesRequest& request) {
    grpc::ClientContext context;
    v1::ListTemplateTypesResponse response;
    const grpc::Status status = v1::TemplateService::NewStub(Connect(fleet_.admin()))
                                    ->ListTemplateTypes(&context, request, &response);
    if (!status.ok()) return FromGrpc(status);
    return response;
  }

  // Stores a document that this Muster rejects, as an earlier one may have done.
  void StoreEarlier(DocumentKind kind, const std::string& name, const std::string& text) {
    StopService();
    {
      const auto database =
          sqlite::LocalDatabase::Open(config_.state_folder + "/jobs.db", kJobsSchema).value();
      StoredDocument stored;
      stored.name = name;
      stored.version = "1.0.0";
      stored.document = text;
      stored.created_by = "ann";
      ASSERT_TRUE(DocumentStore(*database).Put(kind, stored).ok());
    }
    StartService();
  }
};

TEST_F(TemplateServiceTest, TypeIsStoredOnceAndSurvivesARestart) {
  const auto created = CreateType(TypeDocument("1.2.0"));
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_EQ(created->name(), "greet");
  EXPECT_EQ(created->actions(0), "deploy");
  EXPECT_NE(created->created_by().find("/user/"), std::string::npos);
  const auto again = CreateType(absl::StrCat("# a remark\n", TypeDocument("1.2.0")));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->document_sha256(), created->document_sha256());
  EXPECT_EQ(again->create_time().nanos(), created->create_time().nanos());
  StopService();
  StartService();
  const auto found = GetType("greet@1.2.0");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->document(), created->document());
}

TEST_F(TemplateServiceTest, AnotherDocumentWithTheVersionIsRefused) {
  ASSERT_TRUE(CreateType(TypeDocument("1.0.0")).ok());
  const auto other = CreateType(absl::StrCat(TypeDocument("1.0.0"), "description: other\n"));
  EXPECT_EQ(ReasonOf(other.status()), "VERSION_EXISTS");
}

TEST_F(TemplateServiceTest, MistakesOfADocumentAreNamed) {
  const auto created = CreateType("apiVersion: muster/v1\nkind: TemplateType\n");
  EXPECT_EQ(ReasonOf(created.status()), "INVALID_DOCUMENT");
  EXPECT_NE(created.status().message().find("/image: is missing"), std::string::npos)
      << created.status();
}

TEST_F(TemplateServiceTest, DocumentBeyondTheLimitIsRefused) {
  const auto created = CreateType(
      absl::StrCat(TypeDocument("1.0.0"), "description: ", std::string(24 << 10, 'x'), "\n"));
  EXPECT_EQ(ReasonOf(created.status()), "INVALID_DOCUMENT");
}

TEST_F(TemplateServiceTest, ShortReferenceIsTheNewestRelease) {
  for (const char* version : {"1.2.0", "1.10.0", "1.2.9", "2.0.0-rc.1"}) {
    ASSERT_TRUE(CreateType(TypeDocument(version)).ok()) << version;
  }
  EXPECT_EQ(GetType("greet")->version(), "1.10.0");
  EXPECT_EQ(GetType("greet@1")->version(), "1.10.0");
  EXPECT_EQ(GetType("greet@1.2")->version(), "1.2.9");
  EXPECT_EQ(GetType("greet@2.0.0-rc.1")->version(), "2.0.0-rc.1");
  EXPECT_EQ(ReasonOf(GetType("greet@2").status()), "TYPE_NOT_FOUND");
  EXPECT_EQ(ReasonOf(GetType("other").status()), "TYPE_NOT_FOUND");
  EXPECT_EQ(ReasonOf(GetType("greet@x").status()), "INVALID_REFERENCE");
}

TEST_F(TemplateServiceTest, PagesListTheNewestVersionFirst) {
  for (const char* version : {"1.0.0", "1.1.0", "0.9.0"}) {
    ASSERT_TRUE(CreateType(TypeDocument(version)).ok()) << version;
  }
  std::vector<std::string> versions;
  v1::ListTemplateTypesRequest request;
  request.set_page_size(2);
  do {
    const auto page = ListTypes(request);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const v1::TemplateType& type : page->types()) {
      versions.push_back(type.version());
      EXPECT_EQ(type.document(), "");
    }
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  EXPECT_EQ(versions, (std::vector<std::string>{"1.1.0", "1.0.0", "0.9.0"}));
  request.set_page_token("x");
  EXPECT_EQ(ReasonOf(ListTypes(request).status()), "INVALID_PAGE_TOKEN");
  request.set_page_size(1'001);
  EXPECT_EQ(ReasonOf(ListTypes(request).status()), "INVALID_PAGE_SIZE");
}

TEST_F(TemplateServiceTest, DocumentThatIsNotAcceptedAnyMoreIsListedAndNotDeployed) {
  ASSERT_TRUE(CreateType(TypeDocument("1.0.0")).ok());
  std::string document = TypeDocument("1.0.0");
  const size_t digest = document.find("sha256:") + 7;
  document.replace(digest, 64, std::string(64, '0'));
  document = absl::StrReplaceAll(document, {{"name: greet", "name: early"}});
  ASSERT_EQ(ReasonOf(CreateType(document).status()), "INVALID_DOCUMENT");
  StoreEarlier(DocumentKind::kType, "early", document);
  StoreEarlier(DocumentKind::kTemplate, "late", "{\"kind\": \"Template\"}");

  const auto types = ListTypes({});
  ASSERT_TRUE(types.ok()) << types.status();
  ASSERT_EQ(types->types_size(), 2);
  EXPECT_EQ(types->types(0).name(), "early");
  EXPECT_EQ(types->types(0).version(), "1.0.0");
  EXPECT_EQ(types->types(0).image(), "");
  EXPECT_NE(types->types(1).image(), "");
  const auto found = GetType("early@1.0.0");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->document(), document);
  EXPECT_FALSE(found->document_sha256().empty());

  const auto channel = Connect(fleet_.admin());
  const auto templates = testing::CallUnary<v1::TemplateService>(
      channel, &v1::TemplateService::Stub::ListTemplates, v1::ListTemplatesRequest());
  ASSERT_TRUE(templates.ok()) << templates.status();
  ASSERT_EQ(templates->templates_size(), 1);
  EXPECT_EQ(templates->templates(0).name(), "late");
  v1::GetTemplateRequest get;
  get.set_template_("late");
  const auto late = testing::CallUnary<v1::TemplateService>(
      channel, &v1::TemplateService::Stub::GetTemplate, get);
  EXPECT_TRUE(late.ok()) << late.status();

  v1::PlanDeploymentRequest plan;
  plan.set_type("early@1.0.0");
  plan.set_parameters(R"({"name": "Ada"})");
  EXPECT_EQ(ReasonOf(Plan(plan).status()), "INVALID_DOCUMENT");
  plan.clear_type();
  plan.set_template_("late");
  EXPECT_EQ(ReasonOf(Plan(plan).status()), "INVALID_DOCUMENT");
}

TEST_F(TemplateServiceTest, TemplateMayNotWidenItsType) {
  EXPECT_EQ(ReasonOf(CreateTemplate(TemplateDocument("1.0.0")).status()), "TYPE_NOT_FOUND");
  ASSERT_TRUE(CreateType(TypeDocument("1.0.0")).ok());
  const auto created = CreateTemplate(TemplateDocument("1.0.0"));
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_EQ(created->type(), "greet@1.0.0");
  const auto wider = CreateTemplate(
      absl::StrCat(TemplateDocument("1.1.0"), "  name: {schema: {type: string, maxLength: 30}}\n"));
  EXPECT_EQ(ReasonOf(wider.status()), "INVALID_DOCUMENT") << wider.status();
}

// The document of a build has the same content in every fleet.
TEST_F(TemplateServiceTest, BuiltDocumentIsStoredOnlyAsSuch) {
  const std::string type = absl::StrCat(TypeDocument("1.0.0"), "build: {folder: /work}\n");
  ASSERT_TRUE(CreateType(type).ok());
  const std::string image = absl::StrCat("r.example/web@sha256:", std::string(64, 'a'));
  const std::string document = absl::StrCat(
      "apiVersion: muster/v1\nkind: Template\nname: web\nversion: 1.0.0\ntype: "
      "greet@1.0.0\nimage: ",
      image, "\nsource: {kind: folder, sha256: ", std::string(64, 'b'), "}\n");
  EXPECT_EQ(ReasonOf(CreateTemplate(document).status()), "INVALID_DOCUMENT");
  const auto created = CreateTemplate(document, /*built=*/true);
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_EQ(created->image(), image);
  EXPECT_EQ(CreateTemplate(document, /*built=*/true)->document_sha256(),
            created->document_sha256());
  ASSERT_TRUE(CreateType(TypeDocument("1.1.0")).ok());
  const auto other = CreateTemplate(
      absl::StrReplaceAll(document,
                          {{"greet@1.0.0", "greet@1.1.0"}, {"version: 1.0.0", "version: 2.0.0"}}),
      /*built=*/true);
  EXPECT_EQ(ReasonOf(other.status()), "TYPE_NOT_BUILDABLE") << other.status();
}

}  // namespace
}  // namespace muster
