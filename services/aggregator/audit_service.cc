#include "services/aggregator/audit_service.h"

#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "services/aggregator/convert.h"
#include "services/aggregator/joined_relay.h"
#include "services/aggregator/runs/authorities.h"
#include "services/common/base/shell_quote.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/base/utf8.h"
#include "services/common/errors/base.h"
#include "services/common/errors/identity.h"
#include "services/common/errors/runs.h"
#include "services/common/identity/identity.h"
#include "services/common/identity/share_signature.h"
#include "services/common/identity/signed_command.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

constexpr std::string_view kRecordShareRemoval = "/muster.v1.AuditService/RecordShareRemoval";

constexpr std::string_view kRecordJob = "/muster.v1.AuditService/RecordJob";

constexpr std::string_view kRecordServiceChange = "/muster.v1.AuditService/RecordServiceChange";

constexpr std::string_view kListAuditRecords = "/muster.v1.AuditService/ListAuditRecords";

// The limit of names from a relay.
constexpr size_t kMaxText = 1024;

// The limits of a change of a service.
constexpr size_t kMaxSubject = 512;
constexpr size_t kMaxEvent = 100;

constexpr int kMaxPage = 1'000;
constexpr int kDefaultPage = 100;

// The numbers of the stored kinds are those of the API.
static_assert(static_cast<int>(AuditKind::kConflict) == v1::AUDIT_KIND_CONFLICT);
static_assert(static_cast<int>(AuditKind::kLate) == v1::AUDIT_KIND_LATE);
static_assert(static_cast<int>(AuditKind::kReplaced) == v1::AUDIT_KIND_REPLACED);
static_assert(static_cast<int>(AuditKind::kRefused) == v1::AUDIT_KIND_REFUSED);
static_assert(static_cast<int>(AuditKind::kCredential) == v1::AUDIT_KIND_CREDENTIAL);
static_assert(static_cast<int>(AuditKind::kRevocation) == v1::AUDIT_KIND_REVOCATION);
static_assert(static_cast<int>(AuditKind::kRun) == v1::AUDIT_KIND_RUN);
static_assert(static_cast<int>(AuditKind::kUnplanned) == v1::AUDIT_KIND_UNPLANNED);
static_assert(static_cast<int>(AuditKind::kNode) == v1::AUDIT_KIND_NODE);
static_assert(static_cast<int>(AuditKind::kExpired) == v1::AUDIT_KIND_EXPIRED);
static_assert(static_cast<int>(AuditKind::kShare) == v1::AUDIT_KIND_SHARE);
static_assert(static_cast<int>(AuditKind::kDamage) == v1::AUDIT_KIND_DAMAGE);
static_assert(static_cast<int>(AuditKind::kJob) == v1::AUDIT_KIND_JOB);
static_assert(static_cast<int>(AuditKind::kTemplate) == v1::AUDIT_KIND_TEMPLATE);
static_assert(static_cast<int>(AuditKind::kDeployment) == v1::AUDIT_KIND_DEPLOYMENT);
static_assert(static_cast<int>(AuditKind::kConformance) == v1::AUDIT_KIND_CONFORMANCE);
static_assert(static_cast<int>(AuditKind::kSecret) == v1::AUDIT_KIND_SECRET);
static_assert(static_cast<int>(AuditKind::kWorkspace) == v1::AUDIT_KIND_WORKSPACE);

int64_t ToMicros(const google::protobuf::Timestamp& time) {
  return absl::ToUnixMicros(FromProto(time));
}

AuditFilter ToFilter(const v1::ListAuditRecordsRequest& request) {
  AuditFilter filter;
  filter.run = request.run();
  filter.actor = request.actor();
  filter.subject = request.subject();
  for (const int kind : request.kinds()) filter.kinds.push_back(static_cast<AuditKind>(kind));
  if (request.has_since()) filter.since = ToMicros(request.since());
  if (request.has_until()) filter.until = ToMicros(request.until());
  filter.after = request.after_sequence();
  filter.newest_first = request.newest_first();
  return filter;
}

// Returns "cancelled at 2026-11-21T13:00:00Z", or
// "submitted at 2026-11-21T13:00:00Z for 3 nodes: exec /usr/bin/uptime"; without "at" and the time
// if the request has none.
std::string JobText(const v1::RecordJobRequest& request) {
  const std::string at = request.has_time()
                             ? absl::FormatTime(" at %Y-%m-%dT%H:%M:%SZ", FromProto(request.time()),
                                                absl::UTCTimeZone())
                             : "";
  if (request.cancelled()) return absl::StrCat("cancelled", at);
  const std::string command =
      absl::StrCat("submitted", at, " for ", request.targets(),
                   request.targets() == 1 ? " node: " : " nodes: ", request.action(),
                   request.image().empty() ? "" : " ", request.image(), " ",
                   absl::StrJoin(request.argv(), " ", AppendShellWord));
  const std::string_view kept = CutUtf8(command, kMaxText);
  return absl::StrCat(ToAbsl(kept), kept.size() < command.size() ? "..." : "");
}

bool IsServiceChange(v1::AuditKind kind) {
  return kind == v1::AUDIT_KIND_TEMPLATE || kind == v1::AUDIT_KIND_DEPLOYMENT ||
         kind == v1::AUDIT_KIND_CONFORMANCE || kind == v1::AUDIT_KIND_SECRET ||
         kind == v1::AUDIT_KIND_WORKSPACE;
}

// Returns "stored at 2026-11-21T13:00:00.123456Z: DETAIL". Microseconds distinguish changes that
// are otherwise equal.
std::string ChangeText(const v1::RecordServiceChangeRequest& request) {
  return absl::StrCat(
      request.event(),
      absl::FormatTime(" at %Y-%m-%dT%H:%M:%E6SZ", FromProto(request.time()), absl::UTCTimeZone()),
      request.detail().empty() ? "" : ": ", ToAbsl(CutUtf8(request.detail(), kMaxText)));
}

void FillIn(const AuditRecord& record, v1::AuditRecord* out) {
  out->set_sequence(record.sequence);
  *out->mutable_time() = ToTimestamp(record.at);
  out->set_kind(static_cast<v1::AuditKind>(record.kind));
  out->set_actor(record.actor);
  out->set_vouched_by(record.vouched_by);
  if (record.key != ResultKey{}) {
    out->mutable_key()->set_run(record.key.run);
    out->mutable_key()->set_plugin(record.key.plugin);
    out->mutable_key()->set_node(record.key.node);
  }
  out->set_subject(record.subject);
  out->set_text(record.text);
  out->set_count(record.count);
  *out->mutable_last_time() = ToTimestamp(record.last_at);
}

}  // namespace

grpc::ServerUnaryReactor* AuditService::ListAuditRecords(grpc::CallbackServerContext* context,
                                                         const v1::ListAuditRecordsRequest* request,
                                                         v1::ListAuditRecordsResponse* response) {
  return Answer(runtime_, context, kListAuditRecords, {*request, response},
                [=, this](Call& call) { return List(call, *request, response); });
}

absl::Status AuditService::List(Call& call, const v1::ListAuditRecordsRequest& request,
                                v1::ListAuditRecordsResponse* response) {
  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
  if (!request.run().empty()) RETURN_IF_ERROR(CheckRunId(request.run()));
  const int size = request.page_size() == 0 ? kDefaultPage : request.page_size();
  if (size < 1 || size > kMaxPage) return errors::InvalidPageSize(kMaxPage);
  ASSIGN_OR_RETURN(const auto page, store_.Audit(ToFilter(request), request.page_token(), size));
  for (const AuditRecord& record : page.items) FillIn(record, response->add_records());
  response->set_next_page_token(page.next);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* AuditService::RecordShareRemoval(
    grpc::CallbackServerContext* context, const v1::RecordShareRemovalRequest* request,
    v1::RecordShareRemovalResponse* response) {
  return Answer(runtime_, context, kRecordShareRemoval, {*request, response},
                [=, this](Call& call) { return Record(call, *request); });
}

absl::Status AuditService::Record(Call& call, const v1::RecordShareRemovalRequest& request) {
  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
  // Only the root relay serves operators, so another relay would invent its records.
  RETURN_IF_ERROR(RefuseJoinedRelay(call));
  const Identity& caller = call.caller().identity;
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
                   ": removal requested at relay ", request.relay().substr(0, kMaxText));
  return store_.ApplyAndWait(AppendAudit{std::move(record)}).status();
}

grpc::ServerUnaryReactor* AuditService::RecordJob(grpc::CallbackServerContext* context,
                                                  const v1::RecordJobRequest* request,
                                                  v1::RecordJobResponse* response) {
  return Answer(runtime_, context, kRecordJob, {*request, response},
                [=, this](Call& call) { return Record(call, *request); });
}

absl::Status AuditService::Record(Call& call, const v1::RecordJobRequest& request) {
  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
  RETURN_IF_ERROR(RefuseJoinedRelay(call));
  if (!IsJobId(request.job()))
    return errors::InvalidName(request.job(), "a job", "not 32 hex digits");
  ASSIGN_OR_RETURN(const Identity actor,
                   ParseIdentity(request.actor(), call.caller().identity.fleet));
  if (RoleOf(actor) != Role::kOperator && RoleOf(actor) != Role::kGateway) {
    return errors::RoleNotAllowed(request.actor(), kRecordJob, RoleName(Role::kOperator));
  }
  AuditRecord record;
  record.at = absl::ToUnixMicros(clock_.Now());
  record.kind = AuditKind::kJob;
  record.actor = request.actor();
  record.subject = request.job();
  record.text = JobText(request);
  // A relay that received no answer, or was killed before it noted it, sends the record again.
  return store_.ApplyAndWait(AppendAudit{.record = std::move(record), .once = true}).status();
}

grpc::ServerUnaryReactor* AuditService::RecordServiceChange(
    grpc::CallbackServerContext* context, const v1::RecordServiceChangeRequest* request,
    v1::RecordServiceChangeResponse* response) {
  return Answer(runtime_, context, kRecordServiceChange, {*request, response},
                [=, this](Call& call) { return Record(call, *request); });
}

absl::Status AuditService::Record(Call& call, const v1::RecordServiceChangeRequest& request) {
  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
  if (!IsServiceChange(request.kind())) {
    return errors::InvalidName(absl::StrCat(static_cast<int>(request.kind())),
                               "a kind of a service's change", "one of another kind");
  }
  if (request.subject().empty() || request.subject().size() > kMaxSubject ||
      request.event().empty() || request.event().size() > kMaxEvent) {
    return errors::InvalidName(CutUtf8(request.subject(), kMaxSubject), "a subject and an event",
                               "empty or too long");
  }
  const std::string& fleet = call.caller().identity.fleet;
  ASSIGN_OR_RETURN(const Identity actor, ParseIdentity(request.actor(), fleet));
  if (RoleOf(actor) != Role::kOperator && RoleOf(actor) != Role::kGateway) {
    return errors::RoleNotAllowed(request.actor(), kRecordServiceChange, RoleName(Role::kOperator));
  }
  if (!request.vouched_by().empty()) {
    ASSIGN_OR_RETURN(const Identity gateway, ParseIdentity(request.vouched_by(), fleet));
    if (RoleOf(gateway) != Role::kGateway) {
      return errors::RoleNotAllowed(request.vouched_by(), kRecordServiceChange,
                                    RoleName(Role::kGateway));
    }
  }
  AuditRecord record;
  record.at = absl::ToUnixMicros(clock_.Now());
  record.kind = static_cast<AuditKind>(request.kind());
  record.actor = request.actor();
  record.vouched_by = request.vouched_by();
  record.subject = request.subject();
  record.text = ChangeText(request);
  // A service that received no answer, or was killed before it noted it, sends the record again.
  return store_.ApplyAndWait(AppendAudit{.record = std::move(record), .once = true}).status();
}

}  // namespace muster
