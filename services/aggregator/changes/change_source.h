// The stream of one follower of the change feed: a snapshot if it needs one, then the changes.
#ifndef MUSTER_SERVICES_AGGREGATOR_CHANGES_CHANGE_SOURCE_H_
#define MUSTER_SERVICES_AGGREGATOR_CHANGES_CHANGE_SOURCE_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "muster/v1/changes.pb.h"
#include "services/aggregator/changes/change_dispatcher.h"
#include "services/common/base/clock.h"
#include "services/common/rpc/stream.h"
#include "services/common/store/change_feed.h"
#include "services/common/store/state_store.h"

namespace muster {

// The changes that a follower receives: revocations and operators, also runs without their pairs,
// or all.
enum class FollowedChanges { kIdentities, kRuns, kAll };

// Not thread-safe (a stream makes one call at a time). Holds one page of rows and of changes.
class ChangeSource : public StreamSource<v1::FollowChangesResponse> {
 public:
  // A position in a feed; `feed` may be empty, then it is not checked.
  struct Cursor {
    int64_t sequence = 0;
    std::string feed;
  };

  // `cursor`: continue after it; nullopt, or a cursor of another feed: begin with a snapshot. The
  // URI of each operator begins with `operators`.
  ChangeSource(StateStore& store, ChangeFeed& feed, const Clock& clock,
               const std::optional<Cursor>& cursor, FollowedChanges changes, std::string operators,
               ChangeDispatcher::Handle watch);

  // Sends only the pairs of `run`, and ends.
  ChangeSource(StateStore& store, ChangeFeed& feed, const Clock& clock, const std::string& run);

  absl::StatusOr<Pull> Next(v1::FollowChangesResponse* event) override;

 private:
  using Event = v1::FollowChangesResponse;

  absl::Status CheckFeed();
  absl::Status BeginSnapshot();
  absl::Status ContinueSnapshot();
  absl::Status ReadPairs();
  absl::Status ReadChanges();
  absl::Status AddChange(const ChangeRecord& change);
  bool Sends(ChangeKind kind) const;
  bool SendsPairsOf(const RunRecord& run) const;
  void AddRun(const RunRecord& run);
  void AddRedelivery(const ResultKey& key, bool requested);
  void AddOperator(const IssuedRecord& newest);
  v1::FollowChangesResponse::PairChanged* NewPair(const std::string& run,
                                                  const std::string& plugin);
  void AddPair(const std::string& run, PairRecord record);
  void StampLast(const ChangeRecord& change);
  void SetCursor(Event& event, int64_t cursor);

  StateStore& store_;
  ChangeFeed& feed_;
  const Clock& clock_;
  const FollowedChanges changes_;
  const std::string operators_;
  const ChangeDispatcher::Handle watch_;
  const bool follows_ = true;  // false: the stream ends after runs_with_pairs_

  std::deque<Event> ready_;        // sent before anything is read
  size_t pairs_bytes_ = 0;         // size of the texts in the last event, if it contains pairs
  const std::string cursor_feed_;  // of the caller's cursor
  std::string feed_identity_;      // empty: not read yet
  std::optional<int64_t> cursor_;  // nullopt: a snapshot is needed
  int64_t sent_cursor_ = 0;        // the newest one that an event has
  int64_t snapshot_cursor_ = 0;    // the cursor of the snapshot
  bool full_page_ = false;         // of the last read: there may be more changes
  bool in_snapshot_ = false;
  bool runs_done_ = false;
  std::string runs_page_;
  bool redeliveries_done_ = false;
  std::string redeliveries_page_;
  std::deque<std::string> runs_with_pairs_;  // runs whose pairs are not sent yet
  std::string pairs_page_;
  std::optional<ChangeRecord> pending_created_;  // the change whose pairs are being sent
  absl::Duration sent_at_;                       // monotonic
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_CHANGES_CHANGE_SOURCE_H_
