// The RPCs of template types and templates: checks and translates.
#ifndef MUSTER_SERVICES_JOBS_TEMPLATE_SERVICE_H_
#define MUSTER_SERVICES_JOBS_TEMPLATE_SERVICE_H_

#include "muster/v1/templates.grpc.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/disk_reserve.h"
#include "services/common/rpc/call.h"
#include "services/jobs/document_store.h"
#include "services/jobs/template_files.h"

namespace muster {

// Thread-safe. The arguments outlive it.
class TemplateService final : public v1::TemplateService::CallbackService {
 public:
  // `reserve`: of the disk with the store.
  TemplateService(const RpcRuntime& runtime, DocumentStore& store, TemplateFiles& files,
                  DiskReserve& reserve, const Clock& clock)
      : runtime_(runtime), store_(store), files_(files), reserve_(reserve), clock_(clock) {}

  grpc::ServerUnaryReactor* CreateTemplateType(grpc::CallbackServerContext* context,
                                               const v1::CreateTemplateTypeRequest* request,
                                               v1::TemplateType* response) override;
  grpc::ServerUnaryReactor* GetTemplateType(grpc::CallbackServerContext* context,
                                            const v1::GetTemplateTypeRequest* request,
                                            v1::TemplateType* response) override;
  grpc::ServerUnaryReactor* ListTemplateTypes(grpc::CallbackServerContext* context,
                                              const v1::ListTemplateTypesRequest* request,
                                              v1::ListTemplateTypesResponse* response) override;
  grpc::ServerUnaryReactor* CreateTemplate(grpc::CallbackServerContext* context,
                                           const v1::CreateTemplateRequest* request,
                                           v1::Template* response) override;
  grpc::ServerUnaryReactor* GetTemplate(grpc::CallbackServerContext* context,
                                        const v1::GetTemplateRequest* request,
                                        v1::Template* response) override;
  grpc::ServerUnaryReactor* ListTemplates(grpc::CallbackServerContext* context,
                                          const v1::ListTemplatesRequest* request,
                                          v1::ListTemplatesResponse* response) override;

 private:
  absl::Status StoreType(Call& call, const std::string& text, v1::TemplateType* response);
  absl::Status StoreTemplate(Call& call, const v1::CreateTemplateRequest& request,
                             v1::Template* response);
  absl::StatusOr<StoredDocument> Store(Call& call, DocumentKind kind, std::string name,
                                       std::string version, std::string document);

  const RpcRuntime runtime_;
  DocumentStore& store_;
  TemplateFiles& files_;
  DiskReserve& reserve_;
  const Clock& clock_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_TEMPLATE_SERVICE_H_
