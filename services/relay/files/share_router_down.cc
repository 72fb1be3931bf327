// The way down: offers to relays below, and what is fetched from the parent.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/relay.h"
#include "services/common/identity/share_signature.h"
#include "services/relay/files/share_router.h"

namespace muster {
namespace {

constexpr int kOffersAtOnce = 100;
constexpr int kFetchesAtOnce = 16;
constexpr size_t kPiece = size_t{256} << 10;

// It is not there any more, or not for what hangs here: if that changes, it is offered again.
bool IsWithdrawn(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  return reason == "SHARE_NOT_FOUND" || reason == "SHARE_REPLACED" || reason == "NOT_YOURS";
}

}  // namespace

// Whether this child is to be told now: it was not yet, or attached anew, or has not answered.
bool ShareRouter::IsDue(const std::string& plan, const std::shared_ptr<ChildLink>& link) {
  MutexLock lock(mutex_);
  Plan& mine = plans_[plan];
  const absl::Duration now = parts_.clock.MonotonicNow();
  if (mine.offered_to.lock() == link && mine.next > now) return false;
  mine.offered_to = link;
  mine.next = now + times_.offer_again;
  return true;
}

void ShareRouter::Offer(const ShareRecord& record, const std::string& child) {
  const auto link = parts_.tree.Route(child);
  v1::ShareOffers& offers = offers_[child];
  if (link == nullptr || offers.files_size() >= kOffersAtOnce) return;
  if (!IsDue(absl::StrCat("offer/", record.id), link)) return;
  auto file = parts_.store.ReadFile(record);
  if (file.ok()) *offers.add_files() = *std::move(file);
}

void ShareRouter::AskToRemove(const ShareRecord& record) {
  const auto link = parts_.tree.Route(record.child);
  v1::ShareOffers& offers = offers_[record.child];
  if (link == nullptr || offers.removed_size() >= kOffersAtOnce) return;
  if (IsDue(absl::StrCat("remove/", record.id), link)) *offers.add_removed() = record.key();
}

void ShareRouter::SendOffers() {
  for (auto& [child, offers] : std::exchange(offers_, {})) {
    const auto link = parts_.tree.Route(child);
    if (link == nullptr || offers.files_size() + offers.removed_size() == 0) continue;
    v1::AttachResponse message;
    *message.mutable_shares() = std::move(offers);
    link->Send(std::move(message));
  }
}

void ShareRouter::StartFetches() {
  MutexLock lock(mutex_);
  const absl::Duration now = parts_.clock.MonotonicNow();
  auto busy = std::ranges::count_if(offered_, [](const auto& o) { return o.second.plan.busy; });
  for (auto& [name, offered] : offered_) {
    if (busy >= kFetchesAtOnce) return;
    if (offered.plan.busy || offered.plan.next > now) continue;
    offered.plan.busy = down_.Post([this, file = offered.file] { Fetch(file); });
    if (!offered.plan.busy) return;
    ++busy;
  }
}

// What fails is tried again here, soon; what the parent offers again meanwhile is the same offer.
void ShareRouter::Fetch(const v1::SharedFile& file) {
  absl::Status fetched = FetchNow(file);
  if (!fetched.ok()) {
    Log(LogLevel::kWarning, "a shared file cannot be fetched now",
        {{"source", file.key().source()},
         {"target", file.key().target()},
         {"id", file.key().id()},
         {"error", fetched}});
  }
  if (!fetched.ok() && GiveUpFetch(file, fetched)) fetched = RefuseOffer(file, fetched);
  MutexLock lock(mutex_);
  const auto it = offered_.find(NameOf(file.key()));
  const bool replaced = it->second.file.signature() != file.signature();
  if (fetched.ok() && !replaced) {
    offered_.erase(it);
    woken_ = true;
    wake_.NotifyAll();
    return;
  }
  if (replaced) it->second.plan = {};  // another was offered meanwhile
  BackOff(it->second.plan, fetched, absl::ZeroDuration());
}

bool ShareRouter::GiveUpFetch(const v1::SharedFile& file, const absl::Status& why) {
  MutexLock lock(mutex_);
  return IsWithdrawn(why) || IsHopeless(offered_[NameOf(file.key())].plan, why);
}

// The parent tells the source, and offers it no more.
absl::Status ShareRouter::RefuseOffer(const v1::SharedFile& file, const absl::Status& why) {
  if (IsWithdrawn(why)) return absl::OkStatus();
  const auto parent = parts_.parent();
  if (parent == nullptr) return why;
  v1::Share refused;
  *refused.mutable_file() = file;
  refused.set_state(v1::SHARE_STATE_REFUSED);
  refused.set_relay(parts_.tree.name());
  refused.set_reason(absl::StrCat(ReasonOf(why), ": ", why.message()));
  return ShareTransfer(parent, stopper_).Report(refused);
}

absl::Status ShareRouter::FetchNow(const v1::SharedFile& file) {
  const auto parent = parts_.parent();
  if (parent == nullptr) return absl::UnavailableError("there is no parent now");
  RETURN_IF_ERROR(VerifySharedFile(file, parts_.fleet, parts_.roots(), parts_.clock.Now()));
  if (parts_.is_revoked(file.key().source())) {
    return errors::IdentityRevoked(file.key().source());
  }
  ASSIGN_OR_RETURN(auto opened, parts_.store.OpenUpload(file, /*from_parent=*/true, kParentOpener));
  if (opened.existing) return absl::OkStatus();
  ShareUpload& upload = *opened.upload;
  ShareTransfer transfer(parent, stopper_);
  const auto source = transfer.Open(file, opened.offset);
  std::string piece(kPiece, '\0');
  for (int64_t offset = opened.offset;;) {
    ASSIGN_OR_RETURN(const auto n, source->Read(piece));
    if (n == 0) break;
    const std::string_view data(piece.data(), n);
    RETURN_IF_ERROR(upload.Append(opened.epoch, offset, data, Crc32c(data)));
    offset += static_cast<int64_t>(n);
  }
  return parts_.store.Complete(upload, opened.epoch).status();
}

// The parent says so; it hears when it is done.
void ShareRouter::RemoveHere(const v1::ShareKey& key) {
  parts_.store.DropUpload(key);
  const auto found = parts_.store.Find(key);
  if (!found || found->stage == ShareStage::kEnded || found->stage == ShareStage::kPassedUp) {
    v1::Share gone;
    *gone.mutable_file()->mutable_key() = key;
    gone.set_state(v1::SHARE_STATE_REMOVED);
    gone.set_relay(parts_.tree.name());
    const bool queued = up_.Post([this, gone] {
      const auto parent = parts_.parent();
      if (parent != nullptr) ShareTransfer(parent, stopper_).Report(gone).IgnoreError();
    });
    if (!queued) Log(LogLevel::kInfo, "the parent asks again for what is to be removed");
    return;
  }
  ShareRecord is = *found;
  is.share.set_state(v1::SHARE_STATE_REMOVED);
  is.from_parent = true;
  is.removing = found->stage == ShareStage::kPassedDown;
  is.unreported = !is.removing;
  if (!is.removing) is.stage = ShareStage::kEnded;
  Change(*found, std::move(is));
}

}  // namespace muster
