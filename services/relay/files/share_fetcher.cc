#include "services/relay/files/share_fetcher.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/identity/share_signature.h"
#include "services/relay/files/share_signer.h"

namespace muster {
namespace {

constexpr size_t kMostOffers = 1'000;
constexpr size_t kMostFetches = 16;

std::string KeyName(const v1::ShareKey& key) {
  return absl::StrCat(key.source(), "/", key.target(), "/", key.id());
}

// Returns whether the parent withdrew the offer: the file left the parent, or its target left the
// branch of this relay. If that changes, the parent offers it again.
bool IsWithdrawn(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  return reason == "SHARE_NOT_FOUND" || reason == "SHARE_REPLACED" || reason == "NOT_YOURS";
}

}  // namespace

ShareFetcher::ShareFetcher(ShareParts parts, ShareParent& parent, const BackoffOptions& times,
                           PostTask post, ShareRouting& routing)
    : parts_(std::move(parts)),
      parent_(parent),
      post_(std::move(post)),
      routing_(routing),
      schedule_(parts_.clock, times) {}

void ShareFetcher::HandleOffers(const v1::ShareOffers& offers) {
  MutexLock lock(mutex_);
  for (const v1::SharedFile& file : offers.files()) {
    if (offers_.size() >= kMostOffers) return;
    if (const absl::Status valid = ValidateSharedFile(file); !valid.ok()) {
      LogLimited(LogLevel::kWarning, "the parent offers an invalid shared file", "parent",
                 {{"error", valid}});
      continue;
    }
    v1::SharedFile& offer = offers_[KeyName(file.key())];
    offer = file;
    offer.DiscardUnknownFields();  // of any size
  }
}

void ShareFetcher::StartDue() {
  std::vector<v1::SharedFile> open;
  {
    MutexLock lock(mutex_);
    for (const auto& [name, file] : offers_) open.push_back(file);
  }
  for (const v1::SharedFile& file : open) {
    if (schedule_.in_progress() >= kMostFetches) return;
    schedule_.Start(KeyName(file.key()), post_, [this, file] { Fetch(file); });
  }
}

void ShareFetcher::Fetch(const v1::SharedFile& file) {
  const std::string name = KeyName(file.key());
  absl::Status status = Store(file);
  if (!status.ok()) {
    LogLimited(LogLevel::kWarning, "a shared file cannot be fetched now", file.key().source(),
               {{"source", file.key().source()},
                {"target", file.key().target()},
                {"id", file.key().id()},
                {"error", status}});
    if (IsWithdrawn(status)) {
      status = absl::OkStatus();
    } else if (schedule_.CannotSucceed(name, status)) {
      status = Refuse(file, status);
    }
  }
  bool replaced = false;
  {
    MutexLock lock(mutex_);
    const auto it = offers_.find(name);
    replaced = it != offers_.end() && it->second.signature() != file.signature();
    if (status.ok() && !replaced && it != offers_.end()) offers_.erase(it);
  }
  // A later offer of the key is another task.
  if (status.ok() || replaced) {
    schedule_.Forget(name);
  } else {
    schedule_.Finish(name, status);
  }
  routing_.Wake();
}

absl::Status ShareFetcher::Store(const v1::SharedFile& file) {
  RETURN_IF_ERROR(VerifySigner(file, parts_));
  return parts_.store.Receive(
      file, /*from_parent=*/true, kParentOpener,
      [&](int64_t offset, ShareStore::Sink sink) { return parent_.Read(file, offset, sink); });
}

// The parent notifies the source, and does not offer the file again.
absl::Status ShareFetcher::Refuse(const v1::SharedFile& file, const absl::Status& why) {
  v1::Share refused;
  *refused.mutable_file() = file;
  refused.set_state(v1::SHARE_STATE_REFUSED);
  refused.set_relay(parts_.tree.name());
  refused.set_reason(absl::StrCat(ReasonOf(why), ": ", why.message()));
  return parent_.Report(refused);
}

}  // namespace muster
