#include "services/aggregator/audit_service.h"

#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "services/aggregator/runs/authorities.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/identity.h"
#include "services/common/identity/identity.h"
#include "services/common/identity/share_signature.h"

namespace muster {
namespace {

constexpr std::string_view kRecordShareRemoval = "/muster.v1.AuditService/RecordShareRemoval";

// The limit of names from a relay.
constexpr size_t kMaxText = 1024;

}  // namespace

grpc::ServerUnaryReactor* AuditService::RecordShareRemoval(
    grpc::CallbackServerContext* context, const v1::RecordShareRemovalRequest* request,
    v1::RecordShareRemovalResponse*) {
  return Answer(runtime_, context, kRecordShareRemoval, *request,
                [=, this](Call& call) { return Record(call, *request); });
}

absl::Status AuditService::Record(Call& call, const v1::RecordShareRemovalRequest& request) {
  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
  // Only the root relay serves operators, so another relay would invent its records.
  const Identity& caller = call.caller().identity;
  const auto* relay = std::get_if<ServiceIdentity>(&caller.name);
  if (relay == nullptr || *relay != ServiceIdentity{ServiceRole::kRelay, std::string(kRootRelay)}) {
    return errors::NotYours(ToUri(caller).value_or(""), kRecordShareRemoval, "the fleet");
  }
  const v1::ShareKey& key = request.key();
  RETURN_IF_ERROR(ValidateShareKey(key));
  ASSIGN_OR_RETURN(const Identity actor, ParseIdentity(request.actor(), caller.fleet));
  if (RoleOf(actor) != Role::kOperator) {
    return errors::RoleNotAllowed(request.actor(), kRecordShareRemoval, RoleName(Role::kOperator));
  }
  AuditRecord record;
  record.at = absl::ToUnixMicros(clock_.Now());
  record.kind = AuditKind::kShare;
  record.actor = request.actor();
  record.text =
      absl::StrCat("shared file ", key.id(), " from ", key.source(), " for ", key.target(),
                   " removed at relay ", request.relay().substr(0, kMaxText));
  return store_.ApplyAndWait(AppendAudit{std::move(record)}).status();
}

}  // namespace muster
