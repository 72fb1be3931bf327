// One pair of a run, and the pairs of one plugin, as a run's board keeps them.
#ifndef MUSTER_SERVICES_STATUS_BOARD_PAIR_H_
#define MUSTER_SERVICES_STATUS_BOARD_PAIR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/v1/status.pb.h"
#include "services/common/rpc/proto_time.h"
#include "services/status/board/durations.h"
#include "services/status/board/pace.h"
#include "services/status/board/plugin_pace.h"
#include "services/status/board/reasons.h"
#include "services/status/board/text_budget.h"
#include "services/status/heartbeats/sender.h"

namespace muster {

struct PluginPairs;

// The state of a pair from its messages: activities and progress. Times are monotonic.
struct Work {
  std::shared_ptr<const Sender> sender;  // null: only progress has arrived
  absl::Duration began;                  // the first message
  absl::Duration received_at;            // the newest
  v1::Phase phase = v1::PHASE_UNSPECIFIED;
  bool abandoned = false;
  bool slow = false;
  bool lost = false;      // a verdict stands
  bool unsaved = false;   // it is in NewProgress
  uint32_t restarts = 0;  // of the sender, when last looked at
  absl::Duration abandoned_at;
  std::string message;
  std::unique_ptr<v1::Fault> fault;
  std::unique_ptr<v1::Progress> progress;
  size_t text_bytes = 0;  // that are reserved for its texts (FitTexts)
  // Hashes of the texts as they were received: the stored ones may be shortened.
  size_t received_activity = 0;  // the message and the fault
  size_t received_report = 0;    // the message of the progress
  Motion motion;
  double last_rate = 0;       // when its outcome was set; 0: none
  bool in_moving = false;     // PluginPace may return it as stuck
  PairList::iterator moving;  // its place in PluginPace
};

struct Pair {
  std::string node;
  PluginPairs* plugin = nullptr;
  uint64_t version = 0;  // of the run, when it last changed
  v1::Outcome outcome = v1::OUTCOME_PENDING;
  v1::Reason reason = v1::REASON_UNSPECIFIED;
  int64_t generation = 0;
  int64_t size = 0;
  std::string error;
  absl::Time updated = absl::InfinitePast();  // by the wall clock; the infinite past: not known
  absl::Duration reason_since;                // monotonic; the infinite past: not known
  PairList::iterator by_reason;               // its place among those with its reason
  std::unique_ptr<Work> work;                 // null: no message has arrived

  bool pending() const { return outcome == v1::OUTCOME_PENDING; }
  // A genuine result still replaces a time-out.
  bool open() const { return pending() || outcome == v1::OUTCOME_TIMED_OUT; }
};

// The pairs of one plugin, with what is counted as they change.
struct PluginPairs {
  std::string name;
  bool once = false;
  v1::ResultCounts counts;
  std::array<int64_t, v1::Reason_ARRAYSIZE> reasons = {};  // of pending pairs
  std::deque<Pair> pairs;                                  // never moved
  absl::flat_hash_map<absl::string_view, Pair*> by_node;
  std::vector<Pair*> sorted;  // by node
  // In the order of their first messages. Those with an outcome are removed only at the ends.
  std::deque<Pair*> begun;
  int64_t unheard = 0;  // pending pairs without a Work
  Durations durations;  // of the pairs with an outcome
  PluginPace pace;
  PluginTexts texts;
};

// Returns whether the next heartbeat changes the presence of the sender. An activity is handled
// before the heartbeat that contains it, so the pairs of such a sender are judged when its presence
// changes.
bool IsReturning(const Sender& sender);

// The facts of a pair, for Judge.
PairFacts FactsOf(const Pair& pair);

// One answer's view of a run: texts that all its pairs share are made once.
struct PairView {
  // `brief`: leave out the words for pairs that only run or were not started. There may be a
  // hundred thousand of them, and their words are all the same.
  PairView(const Moment& moment, Outlook run, bool brief);

  Moment now;
  Outlook outlook;
  bool brief;
  std::string next_of_running;
  std::string next_of_not_started;
};

// Where a message of pairs ends even if it could hold more of them: what plugins say may be long,
// and gRPC takes 8 MiB.
inline constexpr size_t kPairBytesOfMessage = size_t{4} << 20;

google::protobuf::Timestamp ToTimestamp(absl::Time time);

// Returns whether a run has ended, with an archive or without.
bool IsEnded(v1::RunState state);

// Returns the key of a pair of `run`.
v1::ResultKey KeyOf(const std::string& run, const Pair& pair);

// The event of a pair of `run` whose reason has changed.
v1::NodeEvent MakeNodeEvent(const std::string& run, const Pair& pair, const Moment& now);

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_PAIR_H_
