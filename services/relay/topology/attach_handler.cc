#include "services/relay/topology/attach_handler.h"

#include <algorithm>
#include <utility>

#include "services/common/base/log.h"
#include "services/common/base/names.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/relay.h"
#include "services/common/errors/runs.h"
#include "services/common/identity/revocation.h"
#include "services/common/jobs/job_record.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

constexpr char kMethod[] = "/muster.v1.AttachService/Attach";

constexpr absl::Duration kHelloWithin = absl::Seconds(10);
constexpr size_t kMaxInstance = 64;
constexpr int kMaxTargets = 16;
constexpr int kMaxBelowAtOnce = 500;

// Of records of a relay that are read and not taken yet, before the last message that is read.
constexpr size_t kMaxTakenOfRelay = 1 << 20;

// What may wait for a child: commands for everything below a relay come at once.
constexpr size_t kMaxQueuedToNode = 4 << 20;
constexpr size_t kMaxQueuedToRelay = 64 << 20;

std::string NameOf(const Identity& identity) {
  if (const auto* node = std::get_if<NodeIdentity>(&identity.name)) return node->name;
  if (const auto* service = std::get_if<ServiceIdentity>(&identity.name)) return service->name;
  return "";
}

bool IsRelay(const Identity& identity) { return RoleOf(identity) == Role::kRelay; }

int64_t Nanos(absl::Duration time) { return absl::ToInt64Nanoseconds(time); }

}  // namespace

AttachHandler* AttachHandler::Start(const RpcRuntime& runtime, grpc::CallbackServerContext* context,
                                    const AttachParts& parts) {
  std::shared_ptr<AttachHandler> reactor(new AttachHandler(runtime, context, parts));
  reactor->self_ = reactor;
  absl::Status allowed = reactor->call_.caller_status();
  if (allowed.ok()) allowed = reactor->call_.Authorize(Resource::Own());
  if (!allowed.ok()) {
    reactor->End(allowed);
    return reactor.get();
  }
  const Identity& identity = reactor->call_.caller().identity;
  reactor->name_ = NameOf(identity);
  reactor->is_relay_ = IsRelay(identity);
  reactor->AwaitHello();
  reactor->Greet();
  reactor->ReadOn();
  return reactor.get();
}

AttachHandler::AttachHandler(const RpcRuntime& runtime, grpc::CallbackServerContext* context,
                             const AttachParts& parts)
    : parts_(parts),
      executor_(*runtime.executor),
      context_(context),
      call_(runtime, context, kMethod) {
  heard_at_ = Nanos(parts_.clock.MonotonicNow());
}

void AttachHandler::AwaitHello() {
  hello_late_ = std::make_unique<grpc::Alarm>();
  hello_late_->Set(absl::ToChronoTime(absl::Now() + kHelloWithin),
                   [weak = weak_from_this()](bool expired) {
                     const auto self = expired ? weak.lock() : nullptr;
                     if (self != nullptr && !self->attached_) self->End(errors::NoHello());
                   });
}

void AttachHandler::Greet() {
  const RelaySelf self = parts_.self();
  greeted_key_ = self.key_sha256;
  v1::AttachResponse message;
  message.mutable_greeting()->set_relay(self.uri);
  message.mutable_greeting()->set_key_sha256(self.key_sha256);
  ToProto(parts_.clock.Now(), message.mutable_greeting()->mutable_time());
  Send(std::move(message));
}

void AttachHandler::ReadOn() {
  MutexLock lock(mutex_);
  if (!ended_ && !end_) StartRead(&request_);
}

void AttachHandler::OnReadDone(bool ok) {
  if (!ok) return End(absl::OkStatus());
  heard_at_ = Nanos(parts_.clock.MonotonicNow());
  Dispatch();
}

// One message is dealt with before the next is read: that is what keeps a flood where it comes
// from.
void AttachHandler::Dispatch() {
  if (!attached_ && !request_.has_hello()) {
    return End(errors::InvalidAttachment("the first message is no hello"));
  }
  switch (request_.message_case()) {
    case v1::AttachRequest::kHello:
      return Later([this] { return TakeHello(); });
    case v1::AttachRequest::kTopology:
      return Later([this] { return ApplyUpdate(); });
    case v1::AttachRequest::kRecords: {
      if (const absl::Status s = CheckRecords(); !s.ok()) return End(s);
      return TakeRecords();
    }
    case v1::AttachRequest::kCollectionEnded:
      parts_.collection_ended(name_, request_.collection_ended());
      return ReadOn();
    case v1::AttachRequest::kBeat:
      return ReadOn();
    case v1::AttachRequest::MESSAGE_NOT_SET:
      break;
  }
  ReadOn();  // of a newer version; nothing that is known here
}

void AttachHandler::Later(std::function<absl::Status()> work) {
  const bool queued = executor_.Post([self = shared_from_this(), work = std::move(work)] {
    if (const absl::Status status = work(); !status.ok()) return self->End(status);
    self->ReadOn();
  });
  if (!queued) End(errors::Overloaded());
}

absl::Status AttachHandler::TakeHello() {
  v1::AttachRequest::Hello hello = std::move(*request_.mutable_hello());
  request_ = v1::AttachRequest();  // its memory is not needed again soon
  if (hello.instance_id().empty() || hello.instance_id().size() > kMaxInstance) {
    return errors::InvalidAttachment("the instance_id is empty or too long");
  }
  if (hello.relay_targets_size() > kMaxTargets) {
    return errors::InvalidAttachment("more than 16 addresses");
  }
  ASSIGN_OR_RETURN(const auto verified, parts_.verify(hello.statement()));
  const Identity& caller = call_.caller().identity;
  if (!(verified.child == caller)) {
    return errors::StatementRefused("it is another's than the caller's");
  }
  if (hello.is_relay() != is_relay_) {
    return errors::InvalidAttachment("a node is no relay, and a relay no node");
  }
  if (hello.statement().relay() != parts_.self().uri || verified.relay_key_sha256 != greeted_key_) {
    return errors::StatementRefused("it is for another relay than this, or another key");
  }
  auto statement =
      std::make_shared<const v1::AttachStatement>(std::move(*hello.mutable_statement()));
  if (attached_.exchange(true)) {
    parts_.topology.Refresh(name_, this, std::move(statement));
    return absl::OkStatus();
  }
  TopologyEntry entry;
  entry.name = name_;
  entry.uri = statement->child();
  entry.is_relay = is_relay_;
  entry.relay = parts_.topology.name();
  entry.attached = true;
  entry.since = parts_.clock.Now();
  entry.certificate = CertificateSubject(verified.issuer, verified.serial);
  entry.statement = std::move(statement);
  RETURN_IF_ERROR(parts_.topology.MayAttach(entry));
  // Welcome first: what the tree brings to light for this child goes after it.
  SendWelcome(*this, parts_.topology, parts_.connected(), parts_.interval, parts_.clock.Now());
  // Before any command that waits for it: one of a signer who was revoked meanwhile may be among
  // them.
  hello.set_revocations_version(parts_.tell_signers(*this, hello.revocations_version()));
  ASSIGN_OR_RETURN(auto old, parts_.topology.Attach(std::move(entry), shared_from_this()));
  hello_late_.reset();
  bool done = false;
  {
    MutexLock lock(mutex_);
    done = done_;
  }
  // The stream may have ended meanwhile; then nobody else takes it out of the tree.
  if (done) parts_.topology.Detach(name_, this);
  if (old != nullptr) (old)->End(errors::ChildTakenOver(name_));
  parts_.welcomed(*this, hello);
  return absl::OkStatus();
}

absl::StatusOr<TopologyEntry> AttachHandler::EntryOf(
    const v1::AttachRequest::TopologyUpdate::Descendant& child,
    const std::vector<TopologyEntry>& so_far) const {
  TopologyEntry entry;
  entry.uri = child.statement().child();
  entry.relay = child.relay();
  entry.attached = child.attached();
  entry.since = FromProto(child.change_time());
  const std::string fleet = call_.caller().identity.fleet;
  ASSIGN_OR_RETURN(const auto identity, ParseIdentity(entry.uri, fleet));
  entry.name = NameOf(identity);
  entry.is_relay = IsRelay(identity);
  if (entry.name.empty() || (!entry.is_relay && RoleOf(identity) != Role::kNode)) {
    return errors::InvalidAttachment("something below is neither node nor relay");
  }
  if (!entry.attached) return entry;
  ASSIGN_OR_RETURN(const auto verified, parts_.verify(child.statement()));
  if (verified.relay.name != entry.relay) {
    return errors::StatementRefused("it is for another relay than the one it is shown for");
  }
  const bool known = entry.relay == name_ || parts_.topology.NextHop(entry.relay) == name_ ||
                     std::any_of(so_far.begin(), so_far.end(), [&](const TopologyEntry& other) {
                       return other.is_relay && other.name == entry.relay;
                     });
  if (!known) return errors::StatementRefused("it is for a relay that is not below this child");
  entry.certificate = CertificateSubject(verified.issuer, verified.serial);
  entry.statement = std::make_shared<const v1::AttachStatement>(child.statement());
  return entry;
}

absl::Status AttachHandler::ApplyUpdate() {
  const v1::AttachRequest::TopologyUpdate below = std::move(*request_.mutable_topology());
  request_ = v1::AttachRequest();
  if (!is_relay_) return errors::InvalidAttachment("nothing hangs below a node");
  if (below.descendants_size() > kMaxBelowAtOnce) {
    return errors::InvalidAttachment("more than 500 children in one message");
  }
  std::vector<TopologyEntry> entries;
  for (const auto& child : below.descendants()) {
    auto entry = EntryOf(child, entries);
    if (entry.ok()) {
      entries.push_back(*std::move(entry));
      continue;
    }
    // One that cannot be vouched for does not take the branch with it.
    Log(LogLevel::kWarning, "a node below a relay is left out",
        {{"relay", name_}, {"node", child.statement().child()}, {"error", entry.status()}});
  }
  return parts_.topology.ApplyUpdate(name_, std::move(entries),
                                     {below.forgotten_uris().begin(), below.forgotten_uris().end()},
                                     below.complete());
}

// Records of a branch come in many small messages: if each were stored before the next is read,
// each would be stored alone.
void AttachHandler::TakeRecords() {
  parts_.dispatcher.Saw(request_.records());
  const size_t bytes = request_.records().ByteSizeLong();
  const size_t limit = is_relay_ ? kMaxTakenOfRelay : 0;
  const bool full = (being_taken_ += bytes) > limit;
  parts_.records.Take(std::move(*request_.mutable_records()),
                      [self = shared_from_this(), bytes, limit, full] {
                        self->being_taken_ -= bytes;
                        if (full) self->ReadOn();
                      });
  if (!full) ReadOn();
}

// A child brings records of its own, or of what hangs below it.
absl::Status AttachHandler::CheckRecords() const {
  const v1::JobRecords& records = request_.records();
  if (records.ByteSizeLong() > kMaxJobRecords + kMaxJobRecord) {
    return errors::InvalidAttachment("more than 256 KiB of records in one message");
  }
  for (const v1::JobRecord& record : records.records()) {
    RETURN_IF_ERROR(ValidateJobRecord(record));
    const bool own =
        is_relay_ ? parts_.topology.NextHop(record.node()) == name_ : record.node() == name_;
    // A node below that has just moved to another branch: its records come again from there.
    if (!own && !is_relay_) return errors::InvalidAttachment("a record of another node");
  }
  return absl::OkStatus();
}

void AttachHandler::Send(v1::AttachResponse message) {
  size_t queued = 0;
  {
    MutexLock lock(mutex_);
    if (ended_ || end_) return;
    queued_bytes_ += message.ByteSizeLong();
    queue_.push_back(std::move(message));
    if (!writing_) SendNext();
    queued = queued_bytes_;
  }
  if (queued > (is_relay_ ? kMaxQueuedToRelay : kMaxQueuedToNode)) Drop(queued);
}

// It reads too slowly, or not at all.
void AttachHandler::Drop(size_t queued) {
  const absl::Status why = errors::ChildStuck(name_);
  Log(LogLevel::kWarning, "a child takes no messages, and loses its stream",
      {{"child", name_}, {"waiting_bytes", queued}, {"error", why}});
  End(why);
  // What is being written would have to get out before the stream can end, and never does.
  MutexLock lock(mutex_);
  if (!done_) context_->TryCancel();
}

void AttachHandler::SendNext() {
  writing_ = true;
  said_at_ = Nanos(parts_.clock.MonotonicNow());
  call_.BeginWrite();
  StartWrite(&queue_.front());
}

void AttachHandler::OnWriteDone(bool ok) {
  call_.EndWrite();
  std::optional<absl::Status> end;
  {
    MutexLock lock(mutex_);
    writing_ = false;
    queued_bytes_ -= queue_.front().ByteSizeLong();
    queue_.pop_front();
    if (queue_.empty()) std::deque<v1::AttachResponse>().swap(queue_);
    if (ended_) return;
    if (!ok && !end_) end_ = absl::CancelledError("the child went away");
    if (!end_) {
      if (!queue_.empty()) SendNext();
      return;
    }
    ended_ = true;
    end = end_;
  }
  Finish(call_.Final(*end));
}

void AttachHandler::End(const absl::Status& why) {
  {
    MutexLock lock(mutex_);
    if (ended_ || end_) return;
    end_ = why;
    if (writing_) return;
    ended_ = true;
  }
  Finish(call_.Final(why));
}

void AttachHandler::OnCancel() { End(absl::CancelledError("the child went away")); }

void AttachHandler::Tick() {
  const int64_t now = Nanos(parts_.clock.MonotonicNow());
  const int64_t interval = Nanos(parts_.interval);
  if (now - heard_at_ > 3 * interval) {
    return End(absl::DeadlineExceededError("nothing was heard of the child for three intervals"));
  }
  if (now - said_at_ < interval) return;
  v1::AttachResponse message;
  ToProto(parts_.clock.Now(), message.mutable_beat()->mutable_time());
  Send(std::move(message));
}

void AttachHandler::OnDone() {
  {
    MutexLock lock(mutex_);
    done_ = true;
  }
  if (!name_.empty()) parts_.topology.Detach(name_, this);
  self_.reset();
}

void SendWelcome(ChildLink& child, const Topology& topology, bool connected,
                 absl::Duration interval, absl::Time now) {
  v1::AttachResponse message;
  v1::AttachResponse::Welcome& welcome = *message.mutable_welcome();
  ToProto(interval, welcome.mutable_interval());
  for (std::string& relay : topology.path()) welcome.add_path(std::move(relay));
  welcome.set_connected(connected);
  ToProto(now, welcome.mutable_time());
  child.Send(std::move(message));
}

}  // namespace muster
