#include "services/relay/topology/child_session.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/relay.h"
#include "services/common/errors/runs.h"
#include "services/common/identity/revocation.h"
#include "services/common/jobs/job_record.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

constexpr size_t kMaxInstance = 64;
constexpr size_t kMaxVersion = 64;
constexpr int kMaxTargets = 16;
constexpr size_t kMaxTarget = 300;    // a host name of 253 and a port
constexpr int kMaxDescendants = 500;  // in one message, also of those to forget

// A relay may send this much more before the sink has accepted its records.
constexpr size_t kMaxPendingOfRelay = 1 << 20;

std::string NameOf(const Identity& identity) {
  if (const auto* node = std::get_if<NodeIdentity>(&identity.name)) return node->name;
  if (const auto* service = std::get_if<ServiceIdentity>(&identity.name)) return service->name;
  return "";
}

// Checks the parts of a hello that no signature covers.
absl::Status CheckTexts(const v1::AttachRequest::Hello& hello) {
  if (hello.instance_id().empty() || hello.instance_id().size() > kMaxInstance) {
    return errors::InvalidAttachment("the instance_id is empty or too long");
  }
  if (hello.version().size() > kMaxVersion) {
    return errors::InvalidAttachment("the version is longer than 64 bytes");
  }
  if (hello.link().size() > kMaxLinkText) {
    return errors::InvalidAttachment("the link is described with more than 1,024 bytes");
  }
  if (hello.relay_targets_size() > kMaxTargets) {
    return errors::InvalidAttachment("more than 16 addresses");
  }
  const auto& targets = hello.relay_targets();
  if (std::any_of(targets.begin(), targets.end(),
                  [](const std::string& target) { return target.size() > kMaxTarget; })) {
    return errors::InvalidAttachment("an address is longer than 300 bytes");
  }
  return absl::OkStatus();
}

int64_t Nanos(absl::Duration time) { return absl::ToInt64Nanoseconds(time); }

}  // namespace

bool IsRelay(const Identity& identity) { return RoleOf(identity) == Role::kRelay; }

ChildSession::ChildSession(const AttachParts& parts, Executor& executor, Identity child,
                           std::shared_ptr<ChildStream> stream)
    : parts_(parts),
      executor_(executor),
      child_(std::move(child)),
      name_(NameOf(child_)),
      is_relay_(IsRelay(child_)),
      stream_(std::move(stream)),
      info_(parts.clock),
      received_at_(Nanos(parts.clock.MonotonicNow())) {}

void ChildSession::Begin() {
  const RelaySelf self = parts_.self();
  greeted_key_ = self.key_sha256;
  v1::AttachResponse message;
  message.mutable_greeting()->set_relay(self.uri);
  message.mutable_greeting()->set_key_sha256(self.key_sha256);
  ToProto(parts_.clock.Now(), message.mutable_greeting()->mutable_time());
  Send(std::move(message));
  stream_->ReadNext();
}

void ChildSession::HandleMessage(v1::AttachRequest message) {
  received_at_ = Nanos(parts_.clock.MonotonicNow());
  if (!attached_ && !message.has_hello()) {
    return End(errors::InvalidAttachment("the first message is not a hello"));
  }
  switch (message.message_case()) {
    case v1::AttachRequest::kHello:
      return RunLater([this, hello = std::move(*message.mutable_hello())]() mutable {
        return HandleHello(std::move(hello));
      });
    case v1::AttachRequest::kTopology: {
      if (const absl::Status s = CheckUpdate(message.topology()); !s.ok()) return End(s);
      auto update = std::make_shared<Update>();
      update->message = std::move(*message.mutable_topology());
      return HandleTurn(std::move(update));
    }
    case v1::AttachRequest::kRecords: {
      if (const absl::Status s = CheckRecords(message.records()); !s.ok()) return End(s);
      return HandleRecords(std::move(*message.mutable_records()));
    }
    case v1::AttachRequest::kInfo:
      if (const absl::Status s = HandleInfo(std::move(*message.mutable_info())); !s.ok()) {
        return End(s);
      }
      break;
    case v1::AttachRequest::kBeat:
    case v1::AttachRequest::MESSAGE_NOT_SET:  // of a newer version
      break;
  }
  stream_->ReadNext();
}

void ChildSession::RunLater(absl::AnyInvocable<absl::Status()> work) {
  const bool queued = executor_.Post([self = shared_from_this(), work = std::move(work)]() mutable {
    if (const absl::Status status = work(); !status.ok()) return self->End(status);
    self->stream_->ReadNext();
  });
  if (!queued) End(errors::Overloaded());
}

absl::Status ChildSession::CheckHello(const v1::AttachRequest::Hello& hello,
                                      const VerifiedStatement& verified) const {
  if (!(verified.child == child_)) {
    return errors::StatementRefused("it is not the caller's statement");
  }
  if (hello.is_relay() != is_relay_) {
    return errors::InvalidAttachment("is_relay does not match the certificate");
  }
  if (hello.statement().relay() != parts_.self().uri || verified.relay_key_sha256 != greeted_key_) {
    return errors::StatementRefused("it is for another relay than this, or another key");
  }
  return absl::OkStatus();
}

absl::Status ChildSession::HandleHello(v1::AttachRequest::Hello hello) {
  RETURN_IF_ERROR(CheckTexts(hello));
  ASSIGN_OR_RETURN(const auto verified, parts_.trust.Verify(hello.statement()));
  RETURN_IF_ERROR(CheckHello(hello, verified));
  auto statement =
      std::make_shared<const v1::AttachStatement>(std::move(*hello.mutable_statement()));
  if (attached_.exchange(true)) {
    parts_.topology.Refresh(name_, this, std::move(statement));
    return absl::OkStatus();
  }
  // The hello has arrived late: the child may be attached by another stream or elsewhere by now.
  if (HasEnded()) return absl::OkStatus();
  TopologyEntry entry;
  entry.name = name_;
  entry.uri = statement->child();
  entry.is_relay = is_relay_;
  entry.relay = parts_.topology.name();
  entry.attached = true;
  entry.since = parts_.clock.Now();
  entry.certificate = CertificateSubject(verified.issuer, verified.serial);
  entry.statement = std::move(statement);
  entry.instance = hello.instance_id();
  entry.began = parts_.clock.MonotonicNow() - FromProto(hello.uptime());
  entry.link = hello.link();
  RETURN_IF_ERROR(parts_.upstream.MayAttach());
  RETURN_IF_ERROR(parts_.topology.MayAttach(entry));
  // The welcome precedes the messages that the attachment causes.
  const bool connected = parts_.upstream.connected();
  const std::vector<std::string> ended_runs = parts_.upstream.ended_runs();
  SendWelcome(*this, parts_.topology, parts_.upstream, parts_.interval, parts_.clock);
  // The revocations precede the pending commands: the signer of one may be revoked meanwhile.
  hello.set_revocations_version(
      parts_.trust.SendCommandRevocations(*this, hello.revocations_version()));
  ASSIGN_OR_RETURN(auto previous, parts_.topology.Attach(std::move(entry), shared_from_this()));
  // A change since then was announced to the children without this one.
  if ((!connected && parts_.upstream.connected()) || ended_runs != parts_.upstream.ended_runs()) {
    SendWelcome(*this, parts_.topology, parts_.upstream, parts_.interval, parts_.clock);
  }
  // The stream may have ended meanwhile; HandleEnd found no attachment then.
  if (HasEnded()) parts_.topology.Detach(name_, this);
  if (previous != nullptr) previous->End(errors::ChildTakenOver(name_));
  parts_.trust.SendRevocations(*this, hello);
  return absl::OkStatus();
}

absl::StatusOr<TopologyEntry> ChildSession::EntryOf(
    const v1::AttachRequest::TopologyUpdate::Descendant& descendant,
    const std::vector<TopologyEntry>& so_far) const {
  TopologyEntry entry;
  entry.uri = descendant.statement().child();
  entry.relay = descendant.relay();
  entry.attached = descendant.attached();
  entry.since = FromProto(descendant.change_time());
  if (descendant.link().size() > kMaxLinkText) {
    return errors::InvalidAttachment("a link is described with more than 1,024 bytes");
  }
  entry.link = descendant.link();
  if (descendant.has_info()) {
    RETURN_IF_ERROR(CheckNodeInfo(descendant.info()));
    entry.info = std::make_shared<const v1::NodeInfo>(descendant.info());
  }
  if (descendant.has_duplicate_agent_time()) {
    entry.duplicate_agent_at = FromProto(descendant.duplicate_agent_time());
  }
  ASSIGN_OR_RETURN(const auto identity, ParseIdentity(entry.uri, child_.fleet));
  entry.name = NameOf(identity);
  entry.is_relay = IsRelay(identity);
  if (entry.name.empty() || (!entry.is_relay && RoleOf(identity) != Role::kNode)) {
    return errors::InvalidAttachment("a descendant is neither a node nor a relay");
  }
  // Only the name of a known entry that is detached is used, and ApplyUpdate checks its route. An
  // unknown one needs a statement, which may have expired; a relay that restarted has lost it.
  const bool needs_proof = entry.attached || (!descendant.statement().signature().empty() &&
                                              !parts_.topology.Find(entry.name).has_value());
  if (!needs_proof) return entry;
  ASSIGN_OR_RETURN(const auto verified, Verify(descendant.statement(), entry.attached));
  if (verified.relay.name != entry.relay) {
    return errors::StatementRefused("it is for another relay than the named parent");
  }
  const bool known = entry.relay == name_ || parts_.topology.NextHop(entry.relay) == name_ ||
                     std::any_of(so_far.begin(), so_far.end(), [&](const TopologyEntry& other) {
                       return other.is_relay && other.name == entry.relay;
                     });
  if (!known) return errors::StatementRefused("its relay is not a descendant of this child");
  entry.certificate = CertificateSubject(verified.issuer, verified.serial);
  entry.statement = std::make_shared<const v1::AttachStatement>(descendant.statement());
  return entry;
}

// A statement with a wrong signature costs as much as a valid one, so each is charged.
absl::StatusOr<VerifiedStatement> ChildSession::Verify(const v1::AttachStatement& statement,
                                                       bool attached) const {
  auto verified = attached ? parts_.trust.Verify(statement) : parts_.trust.VerifyPast(statement);
  if (ReasonOf(verified.status()) == "STATEMENT_REFUSED") {
    RETURN_IF_ERROR(parts_.statements.CountInvalid(name_));
  }
  return verified;
}

// Handles the descendants in turns, so that other children do not wait for all signatures.
void ChildSession::HandleTurn(std::shared_ptr<Update> update) {
  const bool queued = executor_.Post([self = shared_from_this(), update = std::move(update)] {
    if (const absl::Status s = self->AddDescendants(*update); !s.ok()) return self->End(s);
    if (update->next < update->message.descendants_size()) return self->HandleTurn(update);
    if (const absl::Status s = self->ApplyUpdate(*update); !s.ok()) return self->End(s);
    self->stream_->ReadNext();
  });
  if (!queued) End(errors::Overloaded());
}

absl::Status ChildSession::CheckUpdate(const v1::AttachRequest::TopologyUpdate& update) const {
  if (!is_relay_) return errors::InvalidAttachment("a node has no descendants");
  if (update.descendants_size() > kMaxDescendants) {
    return errors::InvalidAttachment("more than 500 descendants in one message");
  }
  if (update.forgotten_uris_size() > kMaxDescendants) {
    return errors::InvalidAttachment("more than 500 descendants to forget in one message");
  }
  return absl::OkStatus();
}

absl::Status ChildSession::AddDescendants(Update& update) const {
  const int end = std::min(update.next + kStatementsOfTurn, update.message.descendants_size());
  for (; update.next < end; ++update.next) {
    const auto& descendant = update.message.descendants(update.next);
    auto entry = EntryOf(descendant, update.entries);
    if (entry.ok()) {
      update.entries.push_back(*std::move(entry));
      continue;
    }
    if (ReasonOf(entry.status()) == "TOO_MANY_INVALID_STATEMENTS") return entry.status();
    // One bad statement does not detach the rest of the branch.
    LogLimited(
        LogLevel::kWarning, "a descendant of a relay is ignored", name_,
        {{"relay", name_}, {"node", descendant.statement().child()}, {"error", entry.status()}});
  }
  return absl::OkStatus();
}

absl::Status ChildSession::ApplyUpdate(Update& update) {
  const auto& forgotten = update.message.forgotten_uris();
  return parts_.topology.ApplyUpdate(name_, std::move(update.entries),
                                     {forgotten.begin(), forgotten.end()},
                                     update.message.complete());
}

// A node sends its own records only. A relay also sends those of its descendants (record_filter.h).
absl::Status ChildSession::CheckRecords(const v1::JobRecords& records) const {
  if (records.ByteSizeLong() > kMaxJobRecords + kMaxJobRecord) {
    return errors::InvalidAttachment("more than 256 KiB of records in one message");
  }
  for (const v1::JobRecord& record : records.records()) {
    if (const absl::Status status = ValidateJobRecord(record); !status.ok()) {
      // A child does not choose the reason for a target that is not downstream of it.
      if (record.node() == name_ || parts_.topology.IsDownstreamOf(record.node(), name_)) {
        parts_.records.NoteRefused(record, status);
      }
      return status;
    }
    if (!is_relay_ && record.node() != name_) {
      return errors::InvalidAttachment("a record of another node");
    }
  }
  return absl::OkStatus();
}

// Records of a branch come in many small messages. They are stored together only if the next
// message is read before the records of the previous one are stored.
void ChildSession::HandleRecords(v1::JobRecords records) {
  if (is_relay_) parts_.record_filter.Apply(name_, &records);
  // A message without records has no size that would be limited.
  if (records.records().empty()) return stream_->ReadNext();
  const size_t bytes = records.ByteSizeLong();
  const size_t limit = is_relay_ ? kMaxPendingOfRelay : 0;
  const bool full = (pending_records_ += bytes) > limit;
  if (full) reading_ = false;
  parts_.records.Receive(std::move(records), [self = shared_from_this(), bytes, full] {
    self->pending_records_ -= bytes;
    if (!full) return;
    self->received_at_ = Nanos(self->parts_.clock.MonotonicNow());
    self->reading_ = true;
    self->stream_->ReadNext();
  });
  if (!full) stream_->ReadNext();
}

absl::Status ChildSession::HandleInfo(v1::NodeInfo info) {
  RETURN_IF_ERROR(info_.Receive(std::move(info)));
  PassInfo();
  return absl::OkStatus();
}

void ChildSession::PassInfo() {
  if (auto info = info_.DequeueDue()) parts_.topology.SetInfo(name_, this, std::move(info));
}

void ChildSession::Send(v1::AttachResponse message) {
  sending_ = true;
  sent_at_ = Nanos(parts_.clock.MonotonicNow());
  if (stream_->Send(std::move(message)) != Sent::kFull) return;
  const absl::Status why = errors::ChildStuck(name_);
  LogLimited(LogLevel::kWarning,
             "the stream of a child is cancelled: it does not read its messages", name_,
             {{"child", name_}, {"error", why}});
  stream_->Cancel(why);
}

void ChildSession::Tick() {
  PassInfo();
  const int64_t now = Nanos(parts_.clock.MonotonicNow());
  const int64_t interval = Nanos(parts_.interval);
  if (reading_ && now - received_at_ > 3 * interval) {
    return End(absl::DeadlineExceededError("the child was silent for three intervals"));
  }
  if (sending_ || now - sent_at_ < interval) return;
  v1::AttachResponse message;
  ToProto(parts_.clock.Now(), message.mutable_beat()->mutable_time());
  Send(std::move(message));
}

bool ChildSession::HasEnded() {
  MutexLock lock(mutex_);
  return ended_;
}

void ChildSession::HandleEnd() {
  {
    MutexLock lock(mutex_);
    ended_ = true;
  }
  parts_.topology.Detach(name_, this);
}

void SendWelcome(ChildLink& child, const TopologyView& topology, const Upstream& upstream,
                 absl::Duration interval, const Clock& clock) {
  v1::AttachResponse message;
  v1::AttachResponse::Welcome& welcome = *message.mutable_welcome();
  ToProto(interval, welcome.mutable_interval());
  for (std::string& relay : topology.path()) welcome.add_path(std::move(relay));
  welcome.set_connected(upstream.connected());
  for (std::string& run : upstream.ended_runs()) welcome.add_ended_runs(std::move(run));
  ToProto(clock.Now(), welcome.mutable_time());
  ToProto(clock.MonotonicNow(), welcome.mutable_clock());
  child.Send(std::move(message));
}

}  // namespace muster
