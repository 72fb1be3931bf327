#include "services/jobs/template_service.h"

#include <string>
#include <utility>

#include "absl/time/time.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/templates.h"
#include "services/common/identity/caller_uri.h"
#include "services/common/rpc/proto_time.h"
#include "services/common/templates/canonical_document.h"
#include "services/common/templates/documents.h"
#include "services/jobs/change_origin.h"
#include "services/jobs/conformance_report.h"
#include "services/jobs/page_size.h"

namespace muster {
namespace {

template <typename Message>
void FillCommon(const StoredDocument& stored, Message* message) {
  message->set_name(stored.name);
  message->set_version(stored.version);
  message->set_document(stored.document);
  message->set_document_sha256(ToHex(Sha256::Of(stored.document)));
  message->set_created_by(stored.created_by);
  ToProto(absl::FromUnixMicros(stored.created_at), message->mutable_create_time());
}

// An earlier Muster may have stored a document that this one rejects. Without the fields that come
// from its content it can still be listed and read; a deployment of it fails with the reason.

void Fill(const StoredDocument& stored, v1::TemplateType* message) {
  FillCommon(stored, message);
  const auto type = ReadType(stored.document);
  if (!type.ok()) return;
  message->set_description(type->description);
  message->set_image(type->image);
  message->set_ad_hoc(type->ad_hoc);
  message->mutable_actions()->Assign(type->actions.begin(), type->actions.end());
}

void Fill(const StoredDocument& stored, v1::Template* message) {
  FillCommon(stored, message);
  const auto own = ReadTemplate(stored.document);
  if (!own.ok()) return;
  message->set_description(own->description);
  message->set_type(own->type);
  message->set_image(own->image);
  if (!own->image.empty()) *message->mutable_source() = own->source;
}

// Answers a listing. `add` returns a new message of the response.
template <typename Request, typename Add>
absl::Status List(DocumentStore& store, DocumentKind kind, const Request& request, const Add& add,
                  std::string* next) {
  ASSIGN_OR_RETURN(const size_t limit, PageSize(request.page_size()));
  ASSIGN_OR_RETURN(const auto page,
                   store.List(kind, request.name(), request.page_token(), limit, next));
  for (const StoredDocument& stored : page) {
    auto* const message = add();
    Fill(stored, message);
    message->clear_document();
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<StoredDocument> TemplateService::Store(Call& call, DocumentKind kind,
                                                      std::string name, std::string version,
                                                      std::string document) {
  RETURN_IF_ERROR(reserve_.CheckData(static_cast<int64_t>(document.size())));
  StoredDocument wanted;
  wanted.name = std::move(name);
  wanted.version = std::move(version);
  wanted.document = std::move(document);
  const ChangeOrigin origin = OriginOf(call);
  wanted.created_by = origin.actor;
  wanted.vouched_by = origin.vouched_by;
  wanted.created_at = absl::ToUnixMicros(clock_.Now());
  return store_.Put(kind, wanted);
}

absl::Status TemplateService::StoreType(Call& call, const std::string& text,
                                        v1::TemplateType* response) {
  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
  ASSIGN_OR_RETURN(std::string document, CanonicalDocument(text));
  ASSIGN_OR_RETURN(TypeDocument type, ReadType(document));
  // `muster conformance run` deploys the newest one on all nodes, also without an operator who
  // looks.
  if (type.name == kConformanceType && call.caller().via) {
    return errors::ConformanceTypeThroughGateway(UriOf(call.caller()));
  }
  ASSIGN_OR_RETURN(const auto stored, Store(call, DocumentKind::kType, std::move(type.name),
                                            std::move(type.version), std::move(document)));
  Fill(stored, response);
  return absl::OkStatus();
}

// Merges the template with its type, so that a deployment finds no mistake in either.
absl::Status TemplateService::StoreTemplate(Call& call, const v1::CreateTemplateRequest& request,
                                            v1::Template* response) {
  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
  ASSIGN_OR_RETURN(std::string document, CanonicalDocument(request.document()));
  ASSIGN_OR_RETURN(TemplateDocument own, ReadTemplate(document));
  if (!own.image.empty() && !request.built()) return errors::SetByBuild("image");
  ASSIGN_OR_RETURN(const StoredDocument of_type, store_.Find(DocumentKind::kType, own.type));
  ASSIGN_OR_RETURN(const TypeDocument type, ReadType(of_type.document));
  RETURN_IF_ERROR(MergeTemplate(type, own).status());
  if (!own.image.empty() && type.build_folder.empty()) return errors::TypeNotBuildable(own.type);
  ASSIGN_OR_RETURN(const auto stored, Store(call, DocumentKind::kTemplate, std::move(own.name),
                                            std::move(own.version), std::move(document)));
  Fill(stored, response);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* TemplateService::CreateTemplateType(
    grpc::CallbackServerContext* context, const v1::CreateTemplateTypeRequest* request,
    v1::TemplateType* response) {
  return Answer(runtime_, context, "/muster.v1.TemplateService/CreateTemplateType",
                {*request, response},
                [=, this](Call& call) { return StoreType(call, request->document(), response); });
}

grpc::ServerUnaryReactor* TemplateService::GetTemplateType(
    grpc::CallbackServerContext* context, const v1::GetTemplateTypeRequest* request,
    v1::TemplateType* response) {
  return Answer(runtime_, context, "/muster.v1.TemplateService/GetTemplateType",
                {*request, response}, [=, this](Call& call) -> absl::Status {
                  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
                  ASSIGN_OR_RETURN(const auto stored,
                                   store_.Find(DocumentKind::kType, request->type()));
                  Fill(stored, response);
                  return absl::OkStatus();
                });
}

grpc::ServerUnaryReactor* TemplateService::ListTemplateTypes(
    grpc::CallbackServerContext* context, const v1::ListTemplateTypesRequest* request,
    v1::ListTemplateTypesResponse* response) {
  return Answer(runtime_, context, "/muster.v1.TemplateService/ListTemplateTypes",
                {*request, response}, [=, this](Call& call) -> absl::Status {
                  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
                  return List(
                      store_, DocumentKind::kType, *request, [&] { return response->add_types(); },
                      response->mutable_next_page_token());
                });
}

grpc::ServerUnaryReactor* TemplateService::CreateTemplate(grpc::CallbackServerContext* context,
                                                          const v1::CreateTemplateRequest* request,
                                                          v1::Template* response) {
  return Answer(runtime_, context, "/muster.v1.TemplateService/CreateTemplate",
                {*request, response},
                [=, this](Call& call) { return StoreTemplate(call, *request, response); });
}

grpc::ServerUnaryReactor* TemplateService::GetTemplate(grpc::CallbackServerContext* context,
                                                       const v1::GetTemplateRequest* request,
                                                       v1::Template* response) {
  return Answer(runtime_, context, "/muster.v1.TemplateService/GetTemplate", {*request, response},
                [=, this](Call& call) -> absl::Status {
                  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
                  ASSIGN_OR_RETURN(const auto stored,
                                   store_.Find(DocumentKind::kTemplate, request->template_()));
                  Fill(stored, response);
                  return files_.AddTo(response);
                });
}

grpc::ServerUnaryReactor* TemplateService::ListTemplates(grpc::CallbackServerContext* context,
                                                         const v1::ListTemplatesRequest* request,
                                                         v1::ListTemplatesResponse* response) {
  return Answer(runtime_, context, "/muster.v1.TemplateService/ListTemplates", {*request, response},
                [=, this](Call& call) -> absl::Status {
                  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
                  return List(
                      store_, DocumentKind::kTemplate, *request,
                      [&] { return response->add_templates(); },
                      response->mutable_next_page_token());
                });
}

}  // namespace muster
