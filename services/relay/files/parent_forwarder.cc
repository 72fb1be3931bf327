#include "services/relay/files/parent_forwarder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"

namespace muster {

ParentForwarder::ParentForwarder(ShareStore& store, ShareParent& parent,
                                 const ShareOutcomes& outcomes, const Clock& clock,
                                 const BackoffOptions& times, absl::Duration elsewhere,
                                 PostTask post)
    : store_(store),
      parent_(parent),
      outcomes_(outcomes),
      elsewhere_(elsewhere),
      post_(std::move(post)),
      schedule_(clock, times) {}

void ParentForwarder::Start(const ShareRecord& record, bool only_if_elsewhere) {
  if (!parent_.connected()) return;
  const std::string task = absl::StrCat("send/", record.id);
  schedule_.Start(task, post_, [this, record, only_if_elsewhere, task] {
    const absl::Status sent = SendNow(record, only_if_elsewhere, task);
    schedule_.Finish(task, sent, only_if_elsewhere ? elsewhere_ : absl::ZeroDuration());
  });
}

absl::Status ParentForwarder::SendNow(const ShareRecord& record, bool only_if_elsewhere,
                                      const std::string& task) {
  ASSIGN_OR_RETURN(const auto file, store_.ReadFile(record));
  const auto sent = parent_.Send(file, only_if_elsewhere,
                                 [&](int64_t offset) { return store_.Read(record, offset); });
  if (sent.ok()) {
    if (!sent->retain) outcomes_.PassedUp(record, sent->share.relay());
  } else if (!only_if_elsewhere && schedule_.CannotSucceed(task, sent.status())) {
    outcomes_.Refused(record, sent.status());
  } else {
    LogLimited(LogLevel::kWarning, "a shared file cannot be sent to the parent now",
               record.key().source(), {{"error", sent.status()}});
  }
  return sent.status();
}

void ParentForwarder::Report(const ShareRecord& record) {
  if (!parent_.connected()) return;
  const std::string task = absl::StrCat("report/", record.id);
  schedule_.Start(task, post_, [this, record, task] {
    const absl::Status reported = parent_.Report(record.share);
    if (reported.ok()) outcomes_.Reported(record);
    schedule_.Finish(task, reported);
  });
}

void ParentForwarder::ReportAbsent(const v1::ShareKey& key, const std::string& relay) {
  v1::Share removed;
  *removed.mutable_file()->mutable_key() = key;
  removed.set_state(v1::SHARE_STATE_REMOVED);
  removed.set_relay(relay);
  // The parent asks again if it gets no report.
  const bool queued = post_([this, removed] { parent_.Report(removed).IgnoreError(); });
  if (!queued) LogLimited(LogLevel::kInfo, "a removal of a shared file is reported later", "");
}

void ParentForwarder::Retain(absl::FunctionRef<bool(const std::string& id)> wanted) {
  schedule_.Retain(
      [&](const std::string& task) { return wanted(task.substr(task.find('/') + 1)); });
}

}  // namespace muster
