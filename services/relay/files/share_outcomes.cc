#include "services/relay/files/share_outcomes.h"

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"

namespace muster {

void ShareOutcomes::Change(const ShareRecord& before, ShareRecord after) const {
  after.share.mutable_change_time()->set_seconds(absl::ToUnixSeconds(clock_.Now()));
  const absl::Status updated = store_.Update(before, std::move(after));
  if (!updated.ok() && !absl::IsAborted(updated)) {
    Log(LogLevel::kError, "the state of a shared file cannot be stored", {{"error", updated}});
  }
  routing_.Wake();
}

void ShareOutcomes::Delivered(const ShareRecord& record) const {
  ShareRecord after = record;
  after.share.set_state(v1::SHARE_STATE_DELIVERED);
  after.share.set_relay(relay_);
  after.unreported = after.from_parent;
  Change(record, std::move(after));
}

void ShareOutcomes::Refused(const ShareRecord& record, const absl::Status& why) const {
  ShareRecord after = record;
  after.stage = ShareStage::kEnded;
  if (ReasonOf(why) == "SHARE_EXPIRED") {
    after.share.set_state(v1::SHARE_STATE_EXPIRED);
  } else {
    after.share.set_state(v1::SHARE_STATE_REFUSED);
    after.share.set_reason(absl::StrCat(ReasonOf(why), ": ", why.message()));
  }
  after.unreported = after.from_parent;
  LogLimited(LogLevel::kWarning, "a shared file is refused", record.key().source(),
             {{"source", record.key().source()},
              {"target", record.key().target()},
              {"id", record.key().id()},
              {"error", why}});
  Change(record, std::move(after));
}

void ShareOutcomes::PassedUp(const ShareRecord& record, const std::string& relay) const {
  ShareRecord after = record;
  after.stage = ShareStage::kPassedUp;
  after.unreported = false;
  after.share.set_state(v1::SHARE_STATE_IN_TRANSIT);
  after.share.set_relay(relay);
  Change(record, std::move(after));
}

void ShareOutcomes::Reported(const ShareRecord& record) const {
  ShareRecord after = record;
  after.unreported = false;
  Change(record, std::move(after));
}

void ShareOutcomes::RemovedByParent(const ShareRecord& record) const {
  ShareRecord after = record;
  after.share.set_state(v1::SHARE_STATE_REMOVED);
  after.from_parent = true;
  after.removing = record.stage == ShareStage::kPassedDown;
  after.unreported = !after.removing;
  if (!after.removing) after.stage = ShareStage::kEnded;
  Change(record, std::move(after));
}

}  // namespace muster
