#include "services/status/board/pair.h"

#include <string>
#include <utility>

#include "services/common/base/utf8.h"

namespace muster {
namespace {

// A node has up to 200 events on the disk.
constexpr size_t kMaxEventDetail = 256;

}  // namespace

google::protobuf::Timestamp ToTimestamp(absl::Time time) {
  google::protobuf::Timestamp timestamp;
  const int64_t micros = absl::ToUnixMicros(time);
  timestamp.set_seconds(micros / 1'000'000);
  timestamp.set_nanos(static_cast<int32_t>(micros % 1'000'000 * 1000));
  return timestamp;
}

bool IsEnded(v1::RunState state) {
  return state == v1::RUN_STATE_COMPLETE || state == v1::RUN_STATE_FAILED ||
         state == v1::RUN_STATE_CANCELLED;
}

bool IsReturning(const Sender& sender) {
  return sender.presence() != v1::PRESENCE_ONLINE && sender.presence() != v1::PRESENCE_UNSPECIFIED;
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
    facts.relay = work.sender->relay();
    facts.duplicate_agent = work.sender->duplicate_agent();
  }
  facts.abandoned = work.abandoned;
  facts.abandoned_at = work.abandoned_at;
  facts.phase = work.phase;
  facts.message = work.message;
  facts.fault = work.fault.get();
  facts.has_progress = work.motion.moved();
  facts.moved_at = work.motion.moved_at();
  facts.stuck_after = pair.plugin->pace.stuck_after();
  facts.slow = work.slow;
  return facts;
}

v1::ResultKey KeyOf(const std::string& run, const Pair& pair) {
  v1::ResultKey key;
  key.set_run(run);
  key.set_plugin(pair.plugin->name);
  key.set_node(pair.node);
  return key;
}

v1::NodeEvent MakeNodeEvent(const std::string& run, const Pair& pair, const Moment& now) {
  v1::NodeEvent event;
  *event.mutable_time() = ToTimestamp(now.wall);
  event.set_reason(pair.reason);
  if (pair.work != nullptr && pair.work->sender != nullptr) {
    event.set_presence(pair.work->sender->presence());
  }
  event.set_run(run);
  event.set_plugin(pair.plugin->name);
  // The event of the sender states how long it is silent.
  const std::string cause = Cause(pair.reason, FactsOf(pair), now);
  event.set_detail(std::string(CutUtf8(cause, kMaxEventDetail)));
  if (event.detail().size() < cause.size()) event.mutable_detail()->append("…");
  return event;
}

PairView::PairView(const Moment& moment, Outlook run, bool brief)
    : now(moment),
      outlook(std::move(run)),
      brief(brief),
      next_of_running(NextStep(v1::REASON_RUNNING, {}, outlook, now)),
      next_of_not_started(NextStep(v1::REASON_NOT_STARTED, {}, outlook, now)) {}

}  // namespace muster
