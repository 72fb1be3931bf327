#include "services/aggregator/audit_service.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/identity/share_signature.h"

namespace muster {
namespace {

// The limit of URIs and names from a relay.
constexpr size_t kMaxText = 1024;

}  // namespace

grpc::ServerUnaryReactor* AuditService::RecordShareRemoval(
    grpc::CallbackServerContext* context, const v1::RecordShareRemovalRequest* request,
    v1::RecordShareRemovalResponse*) {
  return Answer(runtime_, context, "/muster.v1.AuditService/RecordShareRemoval", *request,
                [=, this](Call& call) { return Record(call, *request); });
}

absl::Status AuditService::Record(Call& call, const v1::RecordShareRemovalRequest& request) {
  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
  const v1::ShareKey& key = request.key();
  RETURN_IF_ERROR(ValidateShareKey(key));
  AuditRecord record;
  record.at = absl::ToUnixMicros(clock_.Now());
  record.kind = AuditKind::kShare;
  record.actor = request.actor().substr(0, kMaxText);
  record.text =
      absl::StrCat("shared file ", key.id(), " from ", key.source(), " for ", key.target(),
                   " removed at relay ", request.relay().substr(0, kMaxText));
  return store_.ApplyAndWait(AppendAudit{std::move(record)}).status();
}

}  // namespace muster
