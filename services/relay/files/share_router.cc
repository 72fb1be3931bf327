#include "services/relay/files/share_router.h"

#include <cstdint>
#include <set>
#include <utility>

#include "services/common/errors/shares.h"
#include "services/common/identity/share_signature.h"
#include "services/relay/files/share_step.h"
#include "services/relay/files/target_route.h"

namespace muster {
namespace {

// Requests within this time share a tick.
constexpr absl::Duration kCoalesce = absl::Milliseconds(20);
constexpr size_t kMostRemovals = 1'000;

}  // namespace

ShareRouter::ShareRouter(ShareParts parts, const Times& times, Environment environment)
    : parts_(std::move(parts)),
      times_(times),
      environment_(std::move(environment)),
      begun_(parts_.clock.MonotonicNow()),
      outcomes_(parts_.store, parts_.clock, parts_.tree.name(), *this),
      forwarder_(parts_.store, environment_.parent, outcomes_, parts_.clock, times_.retry,
                 times_.elsewhere, environment_.post_upstream),
      fetcher_(parts_, environment_.parent, times_.retry, environment_.post_downstream, *this),
      lookups_(parts_.clock, times_.retry),
      child_offers_(parts_.tree, parts_.clock, times_.offer_again),
      swept_(begun_),
      tick_(environment_.timers, environment_.disk, [this] { Run(); }) {}

ShareRouter::~ShareRouter() { Stop(); }

void ShareRouter::Start() {
  MutexLock lock(mutex_);
  started_ = true;
  RequestTick();
}

void ShareRouter::Stop() { tick_.Stop(); }

bool ShareRouter::settled() const {
  return parts_.clock.MonotonicNow() - begun_ >= times_.settling;
}

void ShareRouter::Wake() {
  MutexLock lock(mutex_);
  RequestTick();
}

// A tick that was requested is not delayed by a later request.
void ShareRouter::RequestTick() {
  if (!started_ || woken_) return;
  woken_ = true;
  tick_.RunAfter(kCoalesce);
}

void ShareRouter::HandleOffers(const v1::ShareOffers& offers) {
  fetcher_.HandleOffers(offers);
  MutexLock lock(mutex_);
  for (const v1::ShareKey& key : offers.removed()) {
    if (removals_.size() >= kMostRemovals) break;
    if (!ValidateShareKey(key).ok()) continue;
    v1::ShareKey& removal = removals_[NameOf(key)];
    removal = key;
    removal.DiscardUnknownFields();  // of any size
  }
  RequestTick();
}

void ShareRouter::Run() {
  {
    MutexLock lock(mutex_);
    woken_ = false;
  }
  Tick();
  MutexLock lock(mutex_);
  if (!woken_) tick_.RunAfter(times_.tick);
}

void ShareRouter::Tick() {
  std::map<ShareName, v1::ShareKey> removals;
  {
    MutexLock lock(mutex_);
    removals.swap(removals_);
  }
  for (const auto& [name, key] : removals) RemoveForParent(key);
  if (parts_.clock.MonotonicNow() - swept_ >= times_.sweep) {
    swept_ = parts_.clock.MonotonicNow();
    parts_.store.Sweep();
  }
  const uint64_t connection = environment_.parent.connection();
  if (connection != 0 && std::exchange(last_connection_, connection) != connection) {
    forwarder_.ResetBackoff();
    fetcher_.ResetBackoff();
    lookups_.ResetBackoff();
  }
  if (settled() && !std::exchange(was_settled_, true)) lookups_.ResetBackoff();
  fetcher_.StartDue();
  const auto open = parts_.store.Select({}, SIZE_MAX, [this](const ShareRecord& record) {
    if (record.unreported || record.removing) return true;
    if (record.stage != ShareStage::kHeld) return false;
    if (record.share.state() == v1::SHARE_STATE_IN_TRANSIT) return true;
    const TargetRoute route = FindTargetRoute(parts_.tree, record.key().target());
    return route.kind != TargetRoute::Kind::kLocal || !route.attached;
  });
  for (const ShareRecord& record : open) Act(record);
  child_offers_.Send();
  std::set<std::string> ids;
  for (const ShareRecord& record : open) ids.insert(record.id);
  const auto wanted = [&](const std::string& id) { return ids.contains(id); };
  forwarder_.Retain(wanted);
  lookups_.Retain(wanted);
  child_offers_.Retain(wanted);
}

void ShareRouter::Act(const ShareRecord& record) {
  if (record.stage == ShareStage::kHeld) ActHeld(record);
  if (record.unreported && !parts_.is_root) forwarder_.Report(record);
  if (record.removing) child_offers_.RequestRemoval(record);
}

void ShareRouter::ActHeld(const ShareRecord& record) {
  const TargetRoute route = FindTargetRoute(parts_.tree, record.key().target());
  switch (NextStep(record, route, parts_.is_root, settled())) {
    case ShareStep::kWait:
      return;
    case ShareStep::kOffer:
      return child_offers_.Offer(record, route.child,
                                 [&] { return parts_.store.ReadFile(record); });
    case ShareStep::kMarkDelivered:
      return outcomes_.Delivered(record);
    case ShareStep::kSend:
      return forwarder_.Send(record);
    case ShareStep::kSendIfElsewhere:
      return SendIfElsewhere(record);
    case ShareStep::kLookUpTarget:
      return LookUpTarget(record, absl::OkStatus());
    case ShareStep::kRefuse:
      return LookUpTarget(record, errors::TargetUnknown(record.key().target()));
  }
}

// The target may attach here again soon.
void ShareRouter::SendIfElsewhere(const ShareRecord& record) {
  if (parts_.is_root) return;
  const auto entry = parts_.tree.Find(record.key().target());
  if (entry && parts_.clock.Now() - entry->since < times_.elsewhere) return;
  forwarder_.SendIfElsewhere(record);
}

// The root relay may not know the node yet; the register knows whether it ever joined.
void ShareRouter::LookUpTarget(const ShareRecord& record, const absl::Status& if_joined) {
  lookups_.Start(record.id, environment_.post_upstream, [this, record, if_joined] {
    absl::Status joined = environment_.targets.AwaitJoined(record.key().target());
    // The node may have attached in the meantime.
    const bool unknown =
        FindTargetRoute(parts_.tree, record.key().target()).kind == TargetRoute::Kind::kUnknown;
    if (joined.ok() && unknown) joined = if_joined;
    if (!joined.ok()) outcomes_.Refused(record, joined);
    lookups_.Finish(record.id, joined);
  });
}

void ShareRouter::RemoveForParent(const v1::ShareKey& key) {
  parts_.store.DropUpload(key);
  const auto found = parts_.store.Find(key);
  if (!found || found->stage == ShareStage::kEnded || found->stage == ShareStage::kPassedUp) {
    return forwarder_.ReportAbsent(key, parts_.tree.name());
  }
  outcomes_.RemovedByParent(*found);
}

}  // namespace muster
