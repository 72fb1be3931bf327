#include "services/relay/files/share_router.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/errors/shares.h"
#include "services/relay/files/share_errors.h"

namespace muster {
namespace {

using Kind = TargetRoute::Kind;

constexpr size_t kThreads = 4;
constexpr absl::Duration kCoalesce = absl::Milliseconds(20);
constexpr absl::Duration kStopWithin = absl::Seconds(10);
constexpr size_t kMaxQueue = 64;
constexpr size_t kMaxOffered = 1'000;
constexpr int kMostDoublings = 10;
// What was stored may be damaged where it comes from, or where a part of it was kept before.
constexpr int kMostBroken = 3;

}  // namespace

// What has no reason comes from the network, or from a server that knows nothing of shared files
// yet. PERMISSION_DENIED is about the relay that calls and where it hangs now, not about the file.
bool IsRefusal(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  if (reason.empty() || reason == "UPLOAD_NOT_FOUND") return false;
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
      return true;
    case absl::StatusCode::kUnauthenticated:
      return reason == "INVALID_SIGNATURE" || reason == "IDENTITY_REVOKED";
    default:
      return false;
  }
}

ShareRouter::ShareRouter(ShareParts parts, Times times, const ShareAggregatorClient& aggregator,
                         std::function<void()> every_look)
    : parts_(std::move(parts)),
      times_(times),
      aggregator_(aggregator),
      every_look_(std::move(every_look)),
      began_(parts_.clock.MonotonicNow()),
      swept_at_(began_),
      up_({"share-up", kThreads, kMaxQueue}),
      down_({"share-down", kThreads, kMaxQueue}) {}

void ShareRouter::Start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

ShareRouter::~ShareRouter() { Stop(); }

void ShareRouter::Stop() {
  thread_.request_stop();
  stopper_.Stop();
  if (thread_.joinable()) thread_.join();
  up_.Drain(kStopWithin).IgnoreError();
  down_.Drain(kStopWithin).IgnoreError();
}

bool ShareRouter::settled() const {
  return parts_.clock.MonotonicNow() - began_ >= times_.settling;
}

void ShareRouter::Wake() {
  MutexLock lock(mutex_);
  woken_ = true;
  wake_.NotifyAll();
}

void ShareRouter::HandleOffers(const v1::ShareOffers& offers) {
  MutexLock lock(mutex_);
  for (const v1::SharedFile& file : offers.files()) {
    // What finds no place is offered again.
    if (offered_.size() >= kMaxOffered) break;
    offered_[NameOf(file.key())].file = file;
  }
  for (const v1::ShareKey& key : offers.removed()) {
    if (remove_.size() >= kMaxOffered) break;
    remove_[NameOf(key)] = key;
  }
  woken_ = true;
  wake_.NotifyAll();
}

void ShareRouter::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    Tick();
    every_look_();
    MutexLock lock(mutex_);
    wake_.WaitFor(mutex_, stop, times_.look,
                  [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return woken_; });
    woken_ = false;
    // Many who come at once are one reason to look.
    wake_.WaitFor(mutex_, stop, kCoalesce, [] { return false; });
  }
}

void ShareRouter::Tick() {
  std::map<ShareName, v1::ShareKey> remove;
  {
    MutexLock lock(mutex_);
    remove.swap(remove_);
  }
  for (const auto& [name, key] : remove) RemoveHere(key);
  StartFetches();
  if (parts_.clock.MonotonicNow() - swept_at_ >= times_.sweep) {
    swept_at_ = parts_.clock.MonotonicNow();
    parts_.store.Sweep();
  }
  const auto parent = parts_.parent();
  if (parent != nullptr && last_parent_.lock() != parent) {
    last_parent_ = parent;
    ForgetBackOff();
  }
  const auto open = parts_.store.Select({}, SIZE_MAX, [this](const ShareRecord& record) {
    if (record.unreported || record.removing) return true;
    if (record.stage != ShareStage::kHeld) return false;
    if (record.share.state() == v1::SHARE_STATE_IN_TRANSIT) return true;
    const TargetRoute route = FindTargetRoute(parts_.tree, record.key().target());
    return route.kind != Kind::kLocal || !route.attached;
  });
  for (const ShareRecord& record : open) Act(record);
  SendOffers();
  std::set<std::string> ids;
  for (const ShareRecord& record : open) ids.insert(record.id);
  MutexLock lock(mutex_);
  std::erase_if(plans_, [&](const auto& plan) {
    return !plan.second.busy && !ids.contains(plan.first.substr(plan.first.find('/') + 1));
  });
}

void ShareRouter::ForgetBackOff() {
  MutexLock lock(mutex_);
  const auto forget = [](Plan& plan) {
    plan.next = absl::ZeroDuration();
    plan.tries = 0;
  };
  for (auto& [name, plan] : plans_) forget(plan);
  for (auto& [name, offered] : offered_) forget(offered.plan);
}

void ShareRouter::Act(const ShareRecord& record) {
  if (record.stage == ShareStage::kHeld) ActHeld(record);
  if (record.unreported) StartReport(record);
  if (record.removing) AskToRemove(record);
}

void ShareRouter::ActHeld(const ShareRecord& record) {
  const bool rests = record.share.state() == v1::SHARE_STATE_DELIVERED;
  TargetRoute route = FindTargetRoute(parts_.tree, record.key().target());
  if (route.kind == Kind::kUnknown && record.from_parent) {
    // The parent says that the target hangs here, or below. What this relay knew is lost with a
    // kill: who is here comes back soon, and who was is away.
    if (!settled()) return;
    route.kind = Kind::kLocal;
  }
  switch (route.kind) {
    case Kind::kDownstream:
      return Offer(record, route.child);
    case Kind::kLocal:
      if (!rests) return MarkDelivered(record);
      // It has gone: perhaps it came back elsewhere.
      if (!route.attached) StartPush(record, /*only_if_elsewhere=*/true);
      return;
    case Kind::kUnreachable:
      return StartPush(record, /*only_if_elsewhere=*/true);
    case Kind::kUnknown:
      break;
  }
  if (!parts_.is_root) return StartPush(record, /*only_if_elsewhere=*/rests);
  if (rests) return;
  if (settled()) return Refuse(record, errors::TargetUnknown(record.key().target()));
  StartRegisterLookup(record);
}

// The root may not know yet who is there; the register knows who never was.
void ShareRouter::StartRegisterLookup(const ShareRecord& record) {
  const std::string plan = absl::StrCat("look-up/", record.id);
  Begin(plan, up_, [this, plan, record] {
    const absl::Status joined = aggregator_.AwaitJoined(record.key().target());
    if (!joined.ok()) Refuse(record, joined);
    Done(plan, joined, absl::ZeroDuration());
  });
}

// Changed meanwhile: it is looked at again.
void ShareRouter::Change(const ShareRecord& was, ShareRecord is) {
  is.share.mutable_change_time()->set_seconds(absl::ToUnixSeconds(parts_.clock.Now()));
  const absl::Status updated = parts_.store.Update(was, std::move(is));
  if (!updated.ok() && !absl::IsAborted(updated)) {
    Log(LogLevel::kError, "cannot write down what became of a shared file", {{"error", updated}});
  }
  Wake();
}

void ShareRouter::MarkDelivered(const ShareRecord& record) {
  ShareRecord is = record;
  is.share.set_state(v1::SHARE_STATE_DELIVERED);
  is.share.set_relay(parts_.tree.name());
  is.unreported = is.from_parent;
  Change(record, std::move(is));
}

void ShareRouter::Refuse(const ShareRecord& record, const absl::Status& why) {
  ShareRecord is = record;
  is.stage = ShareStage::kEnded;
  const bool expired = ReasonOf(why) == "SHARE_EXPIRED";
  is.share.set_state(expired ? v1::SHARE_STATE_EXPIRED : v1::SHARE_STATE_REFUSED);
  if (!expired) {
    is.share.set_reason(absl::StrCat(ReasonOf(why), ": ", why.message()));
  }
  is.unreported = is.from_parent;
  Log(LogLevel::kWarning, "a shared file is refused on its way",
      {{"source", record.key().source()},
       {"target", record.key().target()},
       {"id", record.key().id()},
       {"error", why}});
  Change(record, std::move(is));
}

bool ShareRouter::Begin(const std::string& plan, Executor& executor,
                        absl::AnyInvocable<void()> work) {
  MutexLock lock(mutex_);
  Plan& mine = plans_[plan];
  if (mine.busy || mine.next > parts_.clock.MonotonicNow()) return false;
  mine.busy = executor.Post(std::move(work));
  return mine.busy;
}

void ShareRouter::BackOff(Plan& plan, const absl::Status& status, absl::Duration least) {
  const absl::Duration bound =
      std::min(times_.longest_retry,
               times_.first_retry * (int64_t{1} << std::min(plan.tries, kMostDoublings)));
  ++plan.tries;
  const absl::Duration wait = absl::Uniform(random_, 0.5, 1.0) * std::max(bound, least);
  plan.next = parts_.clock.MonotonicNow() + std::max(wait, RetryAfterOf(status).value_or(wait));
  plan.busy = false;
  woken_ = true;
  wake_.NotifyAll();
}

bool ShareRouter::IsHopeless(Plan& plan, const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  const bool broken = reason == "DIGEST_MISMATCH" || reason == "SIZE_MISMATCH";
  return IsRefusal(status) || (broken && ++plan.broken >= kMostBroken);
}

void ShareRouter::Done(const std::string& plan, const absl::Status& status, absl::Duration least) {
  MutexLock lock(mutex_);
  BackOff(plans_[plan], status, least);
}

void ShareRouter::StartPush(const ShareRecord& record, bool only_if_elsewhere) {
  if (parts_.is_root || parts_.parent() == nullptr) return;
  // A resting file waits for its target to be away for a while.
  if (only_if_elsewhere) {
    const auto entry = parts_.tree.Find(record.key().target());
    if (entry && parts_.clock.Now() - entry->since < times_.elsewhere) return;
  }
  Begin(absl::StrCat("push/", record.id), up_,
        [this, record, only_if_elsewhere] { Push(record, only_if_elsewhere); });
}

void ShareRouter::Push(const ShareRecord& record, bool only_if_elsewhere) {
  const std::string plan = absl::StrCat("push/", record.id);
  const auto parent = parts_.parent();
  const auto file = parts_.store.ReadFile(record);
  if (parent == nullptr || !file.ok()) return Done(plan, file.status(), absl::ZeroDuration());
  const auto sent =
      ShareTransfer(parent, stopper_).Send(*file, only_if_elsewhere, [&](int64_t offset) {
        return parts_.store.Read(record, offset);
      });
  const auto is_hopeless = [&] {
    MutexLock lock(mutex_);
    return IsHopeless(plans_[plan], sent.status());
  };
  if (!sent.ok() && !only_if_elsewhere && is_hopeless()) {
    Refuse(record, sent.status());
  } else if (sent.ok() && !sent->retain) {
    ShareRecord is = record;
    is.stage = ShareStage::kPassedUp;
    is.unreported = false;  // they have it
    is.share.set_state(v1::SHARE_STATE_IN_TRANSIT);
    is.share.set_relay(sent->share.relay());
    Change(record, std::move(is));
  } else if (!sent.ok()) {
    Log(LogLevel::kWarning, "a shared file cannot be passed on up now", {{"error", sent.status()}});
  }
  Done(plan, sent.status(), only_if_elsewhere ? times_.elsewhere : absl::ZeroDuration());
}

void ShareRouter::StartReport(const ShareRecord& record) {
  if (parts_.is_root || parts_.parent() == nullptr) return;
  Begin(absl::StrCat("report/", record.id), up_, [this, record] { Report(record); });
}

void ShareRouter::Report(const ShareRecord& record) {
  const std::string plan = absl::StrCat("report/", record.id);
  const auto parent = parts_.parent();
  if (parent == nullptr) return Done(plan, absl::OkStatus(), absl::ZeroDuration());
  const absl::Status told = ShareTransfer(parent, stopper_).Report(record.share);
  if (told.ok()) {
    ShareRecord is = record;
    is.unreported = false;
    Change(record, std::move(is));
  }
  Done(plan, told, absl::ZeroDuration());
}

}  // namespace muster
