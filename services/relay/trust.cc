#include "services/relay/trust.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/strings.h"
#include "services/common/errors/relay.h"
#include "services/common/errors/rpc.h"
#include "services/common/identity/command_revocations.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

constexpr int kSubjectsAtOnce = 1'000;

// Returns about what a name takes: here and in the RevocationList.
size_t BytesOf(const std::string& subject) { return 2 * (subject.size() + 64); }

// Returns the messages for these subjects: at least one.
template <typename Subjects>
std::vector<v1::AttachResponse> InParts(const Subjects& subjects) {
  std::vector<v1::AttachResponse> messages(1);
  messages.front().mutable_revoked();
  for (const std::string& subject : subjects) {
    if (messages.back().revoked().subjects_size() == kSubjectsAtOnce) messages.emplace_back();
    messages.back().mutable_revoked()->add_subjects(subject);
  }
  return messages;
}

}  // namespace

Trust::Trust(std::string fleet, Roots roots, Topology& topology, CallCanceller& canceller,
             const Clock& clock, size_t max_revoked)
    : fleet_(std::move(fleet)),
      roots_(std::move(roots)),
      topology_(topology),
      canceller_(canceller),
      clock_(clock),
      max_revoked_(max_revoked) {}

absl::StatusOr<VerifiedStatement> Trust::Verify(const v1::AttachStatement& statement) const {
  return VerifyAt(statement, clock_.Now());
}

absl::StatusOr<VerifiedStatement> Trust::VerifyPast(const v1::AttachStatement& statement) const {
  const absl::Time last = FromProto(statement.expire_time()) - absl::Seconds(1);
  return VerifyAt(statement, std::min(clock_.Now(), last));
}

absl::StatusOr<VerifiedStatement> Trust::VerifyAt(const v1::AttachStatement& statement,
                                                  absl::Time when) const {
  auto verified = VerifyAttachStatement(statement, fleet_, roots_(), when);
  if (!verified.ok()) return verified.status();
  const Caller child = {verified->child, std::nullopt, verified->issuer, verified->serial};
  if (revocations_.IsRevoked(child)) return errors::IdentityRevoked(statement.child());
  return verified;
}

void Trust::Enforce(const std::vector<std::string>& fresh) {
  canceller_.EndIf([this](const Caller& caller) { return revocations_.IsRevoked(caller); },
                   errors::CallerRevoked());
  for (const std::string& subject : fresh) topology_.Forget(subject);
}

void Trust::Revoke(const std::vector<std::string>& subjects) {
  {
    MutexLock lock(mutex_);
    for (const std::string& subject : subjects) {
      if (subjects_.insert(subject).second) subjects_bytes_ += BytesOf(subject);
    }
  }
  for (const std::string& subject : subjects) revocations_.Add(subject);
  Enforce(subjects);
  const auto messages = InParts(subjects);
  const auto relays = topology_.ChildRelays();
  MutexLock lock(mutex_);  // not in the middle of a list
  for (const auto& relay : relays) {
    for (const v1::AttachResponse& message : messages) relay->Send(message);
  }
}

void Trust::Replace(std::set<std::string> subjects) {
  std::vector<std::string> fresh;
  {
    MutexLock lock(mutex_);
    subjects_bytes_ = 0;
    for (const std::string& subject : subjects) {
      subjects_bytes_ += BytesOf(subject);
      if (!subjects_.contains(subject)) fresh.push_back(subject);
    }
    subjects_ = subjects;
  }
  revocations_.Replace(std::move(subjects));
  Enforce(fresh);
  const auto relays = topology_.ChildRelays();
  MutexLock lock(mutex_);
  for (const auto& relay : relays) SendAll(*relay);
}

// Sent with the mutex held, so that a child receives no other revocation in the middle of the list,
// and no older list after it.
void Trust::SendAll(ChildLink& child) const {
  std::vector<v1::AttachResponse> messages = InParts(subjects_);
  messages.front().mutable_revoked()->set_reset(true);
  for (v1::AttachResponse& message : messages) {
    message.mutable_revoked()->set_more(&message != &messages.back());
    child.Send(std::move(message));
  }
}

absl::Status Trust::HandleRevoked(const v1::AttachResponse::Revoked& revoked) {
  for (const std::string& subject : revoked.subjects()) {
    if (subject.size() > kMaxSubjectBytes) {
      return errors::RelayRefused(absl::StrCat("it revoked a name of ", subject.size(), " bytes"));
    }
  }
  std::set<std::string> subjects(revoked.subjects().begin(), revoked.subjects().end());
  bool whole = false;
  {
    MutexLock lock(mutex_);
    if (revoked.reset()) {
      list_.emplace();
      list_bytes_ = 0;
    }
    const std::set<std::string>& known = list_ ? *list_ : subjects_;
    size_t bytes = list_ ? list_bytes_ : subjects_bytes_;
    for (const std::string& subject : subjects) {
      if (!known.contains(subject)) bytes += BytesOf(subject);
    }
    if (bytes > max_revoked_) {
      list_.reset();
      return errors::RelayRefused(
          absl::StrCat("the names that it revoked take more than ", max_revoked_, " bytes"));
    }
    if (list_) {
      list_bytes_ = bytes;
      list_->merge(subjects);
      if (revoked.more()) return absl::OkStatus();
      subjects = *std::exchange(list_, std::nullopt);
      whole = true;
    }
  }
  if (whole) {
    Replace(std::move(subjects));
  } else {
    Revoke({subjects.begin(), subjects.end()});
  }
  return absl::OkStatus();
}

void Trust::DropPartialList() {
  MutexLock lock(mutex_);
  list_.reset();
}

void Trust::UpdateCommandRevocations(const v1::CommandRevocations& list) {
  v1::AttachResponse message;
  {
    MutexLock lock(mutex_);
    if (list.version() <= commands_.version()) return;
    // Only what is signed: a parent may have added unknown fields.
    commands_.Clear();
    commands_.set_version(list.version());
    *commands_.mutable_revoked() = list.revoked();
    commands_.set_signature(list.signature());
    *message.mutable_revocations() = commands_;
  }
  for (const auto& child : topology_.Children()) child->Send(message);
}

absl::Status Trust::HandleCommandRevocations(const v1::CommandRevocations& list,
                                             const Certificate& command_ca) {
  if (list.version() <= commands_version()) return absl::OkStatus();
  const absl::Status verified = VerifyCommandRevocations(list, fleet_, command_ca);
  if (!verified.ok()) return errors::RelayRefused(ToStd(verified.message()));
  UpdateCommandRevocations(list);
  return absl::OkStatus();
}

int64_t Trust::commands_version() const {
  MutexLock lock(mutex_);
  return commands_.version();
}

bool Trust::IsRevokedSigner(const Identity& signer) const {
  MutexLock lock(mutex_);
  return muster::IsRevoked(commands_, signer);
}

int64_t Trust::SendCommandRevocations(ChildLink& child, int64_t known) const {
  v1::AttachResponse message;
  {
    MutexLock lock(mutex_);
    if (commands_.version() <= known) return known;
    *message.mutable_revocations() = commands_;
  }
  const int64_t version = message.revocations().version();
  child.Send(std::move(message));
  return version;
}

void Trust::SendRevocations(ChildLink& child, const v1::AttachRequest::Hello& hello) const {
  if (hello.is_relay()) {
    MutexLock lock(mutex_);
    SendAll(child);
  }
  // A newer list may have arrived while the child was being attached.
  SendCommandRevocations(child, hello.revocations_version());
}

}  // namespace muster
