#include "services/status/board/pair.h"

#include <algorithm>
#include <utility>

namespace muster {
namespace {

google::protobuf::Duration ToDuration(absl::Duration duration) {
  google::protobuf::Duration out;
  out.set_seconds(absl::ToInt64Seconds(duration));
  out.set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(duration - absl::Seconds(out.seconds()))));
  return out;
}

std::string Next(const Pair& pair, const PairFacts& facts, const PairView& view) {
  if (pair.reason == v1::REASON_RUNNING) return view.next_of_running;
  if (pair.reason == v1::REASON_NOT_STARTED) return view.next_of_not_started;
  return NextStep(pair.reason, facts, view.outlook, view.now);
}

void FillWork(const Work& work, const PairView& view, v1::PairStatus* out) {
  if (work.progress != nullptr) *out->mutable_progress() = *work.progress;
  if (work.fault != nullptr) *out->mutable_fault() = *work.fault;
  out->set_phase(work.phase);
  absl::Duration heard = work.told_at;
  if (work.sender != nullptr) {
    out->set_presence(work.sender->presence());
    heard = std::max(heard, work.sender->last_seen());
  }
  if (heard == -absl::InfiniteDuration()) return;
  *out->mutable_heartbeat_age() =
      ToDuration(std::max(view.now.monotonic - heard, absl::ZeroDuration()));
}

// Exact only where it may be much.
size_t SizeOf(const v1::PairStatus& pair) {
  constexpr size_t kNumbers = 128;
  size_t size = kNumbers + pair.plugin().size() + pair.node().size() + pair.error().size() +
                pair.detail().size() + pair.next().size();
  if (pair.has_progress()) {
    const v1::Progress& progress = pair.progress();
    size += kNumbers + progress.message().size();
    if (progress.failures_size() + progress.errors_size() > 0) size += progress.ByteSizeLong();
  }
  if (pair.has_fault()) size += pair.fault().ByteSizeLong();
  return size;
}

}  // namespace

google::protobuf::Timestamp ToTimestamp(absl::Time time) {
  google::protobuf::Timestamp timestamp;
  const int64_t micros = absl::ToUnixMicros(time);
  timestamp.set_seconds(micros / 1'000'000);
  timestamp.set_nanos(static_cast<int32_t>(micros % 1'000'000 * 1000));
  return timestamp;
}

absl::Time ToTime(const google::protobuf::Timestamp& timestamp) {
  return absl::FromUnixSeconds(timestamp.seconds()) + absl::Nanoseconds(timestamp.nanos());
}

bool IsEnded(v1::RunState state) {
  return state == v1::RUN_STATE_COMPLETE || state == v1::RUN_STATE_FAILED ||
         state == v1::RUN_STATE_CANCELLED;
}

PairFacts FactsOf(const Pair& pair) {
  PairFacts facts;
  facts.outcome = pair.outcome;
  facts.error = pair.error;
  if (pair.work == nullptr) return facts;
  const Work& work = *pair.work;
  facts.heard_of = true;
  if (work.sender != nullptr) {
    facts.has_sender = true;
    facts.presence = work.sender->presence();
    facts.presence_since = work.sender->presence_since();
    facts.last_seen = work.sender->last_seen();
    facts.evidence = work.sender->evidence();
    facts.doubted = work.sender->doubted();
    facts.double_agent = work.sender->double_agent();
  }
  facts.abandoned = work.abandoned;
  facts.abandoned_at = work.abandoned_at;
  facts.phase = work.phase;
  facts.message = work.message;
  facts.fault = work.fault.get();
  facts.has_progress = work.motion.moved();
  facts.moved_at = work.motion.moved_at();
  facts.stuck_after = pair.plugin->stuck_after;
  facts.slow = work.slow;
  return facts;
}

PairView::PairView(const Moment& moment, Outlook run, bool brief)
    : now(moment),
      outlook(std::move(run)),
      brief(brief),
      next_of_running(NextStep(v1::REASON_RUNNING, {}, outlook, now)),
      next_of_not_started(NextStep(v1::REASON_NOT_STARTED, {}, outlook, now)) {}

size_t FillPair(const Pair& pair, const PairView& view, v1::PairStatus* out) {
  out->set_plugin(pair.plugin->name);
  out->set_node(pair.node);
  out->set_outcome(pair.outcome);
  out->set_size(pair.size);
  if (!pair.error.empty()) out->set_error(pair.error);
  if (pair.updated != absl::InfinitePast()) {
    *out->mutable_update_time() = ToTimestamp(pair.updated);
  }
  if (pair.work != nullptr) FillWork(*pair.work, view, out);
  if (pair.reason == v1::REASON_UNSPECIFIED) return SizeOf(*out);
  out->set_reason(pair.reason);
  *out->mutable_reason_since() = ToTimestamp(view.now.WallOf(pair.reason_since));
  if (view.brief && pair.reason == v1::REASON_NOT_STARTED) return SizeOf(*out);
  const PairFacts facts = FactsOf(pair);
  out->set_detail(Detail(pair.reason, facts, view.now));
  if (!view.brief || pair.reason != v1::REASON_RUNNING) out->set_next(Next(pair, facts, view));
  return SizeOf(*out);
}

}  // namespace muster
