#include "services/status/relay_heartbeat_handler.h"

#include <algorithm>
#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/mutex.h"
#include "services/common/base/names.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/heartbeats.h"
#include "services/common/errors/relay.h"
#include "services/common/errors/rpc.h"
#include "services/common/identity/caller_uri.h"
#include "services/common/identity/identity.h"
#include "services/common/identity/revocation.h"
#include "services/common/rpc/caller.h"
#include "services/common/rpc/forwarding.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

constexpr std::string_view kOfOne = "/muster.v1.HeartbeatService/StreamHeartbeats";

constexpr int kMaxSendersInMessage = 1000;
constexpr int kMaxHeard = 100'000;
constexpr size_t kMaxMembers = 100'000;
// Refusals or probes in a message. While more wait for the relay, nothing is read from it.
constexpr size_t kMaxInMessage = 1000;

void AddRefused(int32_t id, const absl::Status& why, v1::RelayHeartbeatsResponse* response) {
  v1::RelayHeartbeatsResponse::Refused& refused = *response->add_refused();
  refused.set_id(id);
  refused.set_code(static_cast<int32_t>(why.code()));
  refused.set_message(std::string(why.message()));
  refused.mutable_detail()->set_reason(ReasonOf(why));
  refused.mutable_detail()->set_next_step(NextStepOf(why));
  if (const auto delay = RetryAfterOf(why)) {
    ToProto(*delay, refused.mutable_detail()->mutable_retry_after());
  }
}

}  // namespace

// A sender that is attached to the relay. It may outlive the stream, and then has no effect.
class RelayHeartbeatHandler::Member : public SenderLink {
 public:
  Member(std::weak_ptr<RelayHeartbeatHandler> stream, int32_t id, const HeartbeatParts& parts)
      : intake(parts), stream_(std::move(stream)), id_(id) {}

  // SenderLink.
  void Probe() override {
    if (const auto stream = stream_.lock()) stream->Probe(id_);
  }
  void End(const absl::Status& why) override {
    const auto stream = stream_.lock();
    if (stream == nullptr) return;
    // The stop of the service ends the whole stream.
    if (ReasonOf(why) == "STATUS_STOPPING") return stream->End(why);
    stream->EndMember(id_, why);
  }

  HeartbeatIntake intake;
  std::string uri;
  std::shared_ptr<const Caller> caller;
  absl::Time until;  // the end of its attach statement

 private:
  const std::weak_ptr<RelayHeartbeatHandler> stream_;
  const int32_t id_;
};

RelayHeartbeatHandler::RelayHeartbeatHandler(const RpcRuntime& runtime, const HeartbeatParts& parts)
    : runtime_(runtime), parts_(parts) {}

ServerStreamOptions RelayHeartbeatHandler::Options(absl::Duration first_within) {
  ServerStreamOptions options;
  options.on_executor = true;
  // The first message names the relay, also if no node is attached to it.
  options.first_within = first_within;
  options.first_late = errors::NoFirstHeartbeat;
  return options;
}

void RelayHeartbeatHandler::OnStart(
    const std::shared_ptr<ServerStream<v1::RelayHeartbeatsResponse>>& stream) {
  stream_ = stream;
  const absl::Status allowed = stream->call().Authorize(Resource::Own());
  if (!allowed.ok()) return stream->End(allowed);
  stream->ReadNext();
}

void RelayHeartbeatHandler::OnMessage(v1::RelayHeartbeatsRequest request) {
  if (const absl::Status status = Begin(request); !status.ok()) return stream_->End(status);
  request_ = std::move(request);
  next_sender_ = 0;
  HandleTurn();
}

// Handles the senders of the message, or as many as have their turn; OnWritable handles the others.
void RelayHeartbeatHandler::HandleTurn() {
  bool more = false;
  if (const absl::Status status = HandleSenders(&more); !status.ok()) return stream_->End(status);
  if (!more) {
    for (const int32_t id : request_.heard_ids()) HandleHeardId(id);
    request_.Clear();
    {
      MutexLock lock(mutex_);
      answer_due_ = true;
    }
    read_due_ = true;
    ReadIfAnswered();
  }
  stream_->NotifyWhenWritable();
}

// Reads the next message, unless too many refusals or probes wait for the relay; then OnWritable
// does it.
void RelayHeartbeatHandler::ReadIfAnswered() {
  if (!read_due_) return;
  {
    MutexLock lock(mutex_);
    if (refused_.size() > kMaxInMessage || probes_.size() > kMaxInMessage) return;
  }
  read_due_ = false;
  stream_->ReadNext();
}

absl::Status RelayHeartbeatHandler::HandleSenders(bool* more) {
  statements_ = 0;
  for (; next_sender_ < request_.senders_size(); ++next_sender_) {
    *more = statements_ >= kStatementsOfTurn;
    if (*more) return absl::OkStatus();
    RETURN_IF_ERROR(HandleSender(*request_.mutable_senders(next_sender_)));
  }
  return absl::OkStatus();
}

// Charges the relay for a statement that could not be verified.
absl::Status RelayHeartbeatHandler::CountInvalid(const absl::Status& why) {
  if (ReasonOf(why) != "IDENTITY_NOT_FORWARDABLE") return absl::OkStatus();
  return parts_.statements.CountInvalid(payer_);
}

// A relay sends no goodbye: its senders return by another route, or with the relay.
void RelayHeartbeatHandler::OnHalfClose() { stream_->End(errors::NoReadableMessage()); }

void RelayHeartbeatHandler::End(const absl::Status& status) {
  if (stream_ != nullptr) stream_->End(status);
}

// Returns the proof that the stream is that of the relay that it names: the caller is this relay,
// or an ancestor that forwards the stream with the statement of this relay. REVOKED if this relay
// was revoked: nothing of it is kept, so that no run waits for it.
absl::StatusOr<std::optional<RelayHeartbeatHandler::Proof>> RelayHeartbeatHandler::Prove() {
  const Caller& caller = stream_->call().caller();
  const auto* service = std::get_if<ServiceIdentity>(&caller.identity.name);
  if (service != nullptr && *service == ServiceIdentity{ServiceRole::kRelay, relay_name_}) {
    return Proof();
  }
  const auto& metadata = stream_->context()->client_metadata();
  const auto statement = metadata.find(kRelayStatement);
  if (statement == metadata.end()) return std::optional<Proof>();
  auto relay = runtime_.callers->ResolveForwardedRelay(
      caller, relay_name_, {statement->second.data(), statement->second.size()});
  if (!relay.ok()) return std::optional<Proof>();
  if (parts_.is_revoked(*relay->caller)) return errors::CallerRevoked();
  return Proof{std::move(relay->caller), std::move(relay->parent), relay->expires, relay->expires};
}

// Returns the name under which invalid statements are counted. Both the relay and its parent can
// forge those in a forwarded stream. So they pay together: the relay keeps its account with other
// parents, and the parent that of its other streams.
std::string RelayHeartbeatHandler::PayerOf(const Proof* proof) const {
  if (proof == nullptr || proof->statement == nullptr) return UriOf(stream_->call().caller());
  return absl::StrCat("relay ", proof->parent, " with the stream of relay ", relay_name_);
}

// An ancestor could keep the stream open when the relay is disconnected, or attached elsewhere.
absl::Status RelayHeartbeatHandler::CheckProof() const {
  if (!proof_ || proof_->statement == nullptr) return absl::OkStatus();
  if (parts_.is_revoked(*proof_->statement)) return errors::CallerRevoked();
  if (parts_.clock.Now() < proof_->until &&
      !runtime_.callers->HasMoved(UriOf(*proof_->statement), proof_->parent, proof_->expires)) {
    return absl::OkStatus();
  }
  return errors::NotAttached(absl::StrCat("relay ", relay_name_));
}

absl::Status RelayHeartbeatHandler::Begin(const v1::RelayHeartbeatsRequest& request) {
  std::vector<int32_t> gone;
  {
    MutexLock lock(mutex_);
    gone.swap(gone_);
  }
  for (const int32_t id : gone) Drop(id);
  if (request.senders_size() > kMaxSendersInMessage || request.heard_ids_size() > kMaxHeard) {
    return errors::InvalidHeartbeat("too many senders in one message");
  }
  if (relay_name_.empty()) {
    RETURN_IF_ERROR(ValidateName("relay", request.relay()));
    relay_name_ = request.relay();
    ASSIGN_OR_RETURN(auto proof, Prove());
    payer_ = PayerOf(proof ? &*proof : nullptr);
    if (proof) {
      const Caller& relay = proof->statement ? *proof->statement : stream_->call().caller();
      ASSIGN_OR_RETURN(relay_, parts_.registry.OpenRelay(
                                   relay_name_, CertificateSubject(relay.issuer, relay.serial)));
      proof_ = std::move(proof);
    }
  }
  RETURN_IF_ERROR(CheckProof());
  if (proof_) parts_.registry.HandleRelayMessage(relay_);
  return absl::OkStatus();
}

absl::Status RelayHeartbeatHandler::HandleSender(v1::RelayHeartbeatsRequest::Sender& sender) {
  const int32_t id = sender.id();
  if (id < 1) return errors::InvalidHeartbeat("a sender without a number");
  if (sender.ended()) {
    Drop(id);
    return absl::OkStatus();
  }
  std::shared_ptr<Member> member;
  if (const auto it = members_.find(id); it != members_.end()) member = it->second;
  if (member == nullptr) {
    // The relay may send a refused sender again before it receives the refusal.
    if (sender.uri().empty()) return absl::OkStatus();
    if (members_.size() >= kMaxMembers) {
      Refuse(id, errors::TooManySenders(kMaxMembers));
      return absl::OkStatus();
    }
    member = std::make_shared<Member>(weak_from_this(), id, parts_);
    member->uri = sender.uri();
    members_[id] = member;
  }
  if (!sender.attach_statement().empty() || member->caller == nullptr) {
    ++statements_;
    auto forwarded = runtime_.callers->ResolveForwarded(stream_->call().caller(), member->uri,
                                                        sender.attach_statement());
    if (!forwarded.ok()) {
      Refuse(id, forwarded.status());
      return CountInvalid(forwarded.status());
    }
    if (forwarded->parent != relay_name_) {
      Refuse(id, errors::NotAttached(member->uri));
      return absl::OkStatus();
    }
    if (relay_ == nullptr) {
      ASSIGN_OR_RETURN(relay_, parts_.registry.FindRelay(relay_name_));
    }
    member->caller = std::move(forwarded->caller);
    member->until = forwarded->expires;
    if (proof_) proof_->until = std::max(proof_->until, member->until);
  }
  if (!sender.has_beat()) return absl::OkStatus();
  const absl::Status taken = HandleHeartbeat(member, *sender.mutable_beat());
  if (!taken.ok()) {
    Refuse(id, taken);
  } else if (sender.beat().goodbye()) {
    Drop(id);
  }
  return absl::OkStatus();
}

absl::Status RelayHeartbeatHandler::HandleHeartbeat(const std::shared_ptr<Member>& member,
                                                    v1::StreamHeartbeatsRequest& heartbeat) {
  const Caller& caller = *member->caller;
  if (parts_.is_revoked(caller)) return errors::CallerRevoked();
  if (parts_.clock.Now() >= member->until) return errors::NotAttached(member->uri);
  return member->intake
      .Handle(heartbeat, caller.identity,
              [&](const Resource& resource) { return Authorize(caller, kOfOne, resource); },
              {.link = member, .peer = {}, .relay = relay_})
      .status();
}

void RelayHeartbeatHandler::HandleHeardId(int32_t id) {
  const auto it = members_.find(id);
  if (it == members_.end() || !it->second->intake.stream_ref()) return;
  Member& member = *it->second;
  if (parts_.is_revoked(*member.caller)) return Refuse(id, errors::CallerRevoked());
  if (parts_.clock.Now() >= member.until) return Refuse(id, errors::NotAttached(member.uri));
  const Registry::StreamRef& stream_ref = *member.intake.stream_ref();
  parts_.registry.HandleHeartbeat(stream_ref, 0, stream_ref.sender()->clock_skew());
}

void RelayHeartbeatHandler::Drop(int32_t id) {
  const auto it = members_.find(id);
  if (it == members_.end()) return;
  const std::shared_ptr<Member> member = it->second;
  members_.erase(it);
  if (!member->intake.stream_ref()) return;
  if (parts_.is_revoked(*member->caller)) {
    parts_.registry.Revoked(*member->intake.stream_ref());
  } else {
    parts_.registry.Closed(*member->intake.stream_ref(), /*by_peer=*/false);
  }
}

void RelayHeartbeatHandler::Refuse(int32_t id, const absl::Status& why) {
  Drop(id);
  MutexLock lock(mutex_);
  refused_.emplace_back(id, why);
}

void RelayHeartbeatHandler::EndMember(int32_t id, const absl::Status& why) {
  {
    MutexLock lock(mutex_);
    refused_.emplace_back(id, why);
    gone_.push_back(id);
  }
  stream_->NotifyWhenWritable();
}

void RelayHeartbeatHandler::Probe(int32_t id) {
  {
    MutexLock lock(mutex_);
    probes_.push_back(id);
  }
  stream_->NotifyWhenWritable();
}

void RelayHeartbeatHandler::OnWritable() {
  SendAnswer();
  ReadIfAnswered();
  if (next_sender_ < request_.senders_size()) HandleTurn();
}

// Sends one message, and the rest after it.
void RelayHeartbeatHandler::SendAnswer() {
  v1::RelayHeartbeatsResponse response;
  bool more = false;
  {
    MutexLock lock(mutex_);
    if (!answer_due_ && refused_.empty() && probes_.empty()) return;
    answer_due_ = false;
    const size_t refused = std::min(refused_.size(), kMaxInMessage);
    for (size_t i = 0; i < refused; ++i) {
      AddRefused(refused_[i].first, refused_[i].second, &response);
    }
    refused_.erase(refused_.begin(), refused_.begin() + static_cast<ptrdiff_t>(refused));
    const auto probes =
        probes_.begin() + static_cast<ptrdiff_t>(std::min(probes_.size(), kMaxInMessage));
    response.mutable_probes()->Add(probes_.begin(), probes);
    probes_.erase(probes_.begin(), probes);
    more = !refused_.empty() || !probes_.empty();
  }
  ToProto(parts_.registry.Interval(), response.mutable_interval());
  ToProto(parts_.clock.Now(), response.mutable_time());
  stream_->Send(std::move(response));
  if (more) stream_->NotifyWhenWritable();
}

void RelayHeartbeatHandler::OnEnd(const absl::Status&, EndedBy) {
  // First, so that the relay explains the silence of its senders.
  if (proof_) parts_.registry.CloseRelay(relay_);
  for (const auto& [id, member] : members_) {
    if (member->intake.stream_ref()) parts_.registry.Closed(*member->intake.stream_ref(), false);
  }
  members_.clear();
}

}  // namespace muster
