#include "services/aggregator/changes/change_source.h"

#include <utility>

#include "services/aggregator/convert.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"

namespace muster {
namespace {

constexpr int kRunsPage = 100;
constexpr int kPairsPage = 2000;
constexpr size_t kChangesPage = 500;
constexpr int kRedeliveriesPage = 500;

// The pairs of one message: one message costs about as much as hundreds of pairs. With their texts
// (an error may have 4 KiB) they stay far below the limit of a message.
constexpr int kPairsOfEvent = 500;
constexpr size_t kTextsOfEvent = 256 * 1024;

// An idle stream sends a heartbeat after this time.
constexpr absl::Duration kHeartbeat = absl::Seconds(5);

}  // namespace

ChangeSource::ChangeSource(StateStore& store, ChangeFeed& feed, const Clock& clock,
                           const std::optional<Cursor>& cursor, FollowedChanges changes,
                           std::string operators, ChangeDispatcher::Handle watch)
    : store_(store),
      feed_(feed),
      clock_(clock),
      changes_(changes),
      operators_(std::move(operators)),
      watch_(std::move(watch)),
      cursor_feed_(cursor ? cursor->feed : ""),
      sent_at_(clock.MonotonicNow()) {
  if (!cursor) return;
  cursor_ = cursor->sequence;
  sent_cursor_ = cursor->sequence;
}

ChangeSource::ChangeSource(StateStore& store, ChangeFeed& feed, const Clock& clock,
                           const std::string& run)
    : store_(store), feed_(feed), clock_(clock), changes_(FollowedChanges::kAll), follows_(false) {
  runs_with_pairs_.push_back(run);
}

absl::StatusOr<Pull> ChangeSource::Next(Event* event) {
  while (ready_.empty()) {
    absl::Status status;
    if (!follows_) {
      if (runs_with_pairs_.empty()) return Pull::kEnd;
      status = ReadPairs();
    } else if (feed_identity_.empty()) {
      status = CheckFeed();
    } else if (!runs_with_pairs_.empty()) {
      status = ReadPairs();
    } else if (in_snapshot_) {
      status = ContinueSnapshot();
    } else if (!cursor_) {
      status = BeginSnapshot();
    } else {
      status = ReadChanges();
      if (status.ok() && ready_.empty() && runs_with_pairs_.empty() && cursor_) {
        // After a whole page of changes that are not sent there may be more.
        if (!full_page_ && clock_.MonotonicNow() - sent_at_ < kHeartbeat) return Pull::kWait;
        Event& heartbeat = ready_.emplace_back();
        heartbeat.mutable_heartbeat();
        if (*cursor_ > sent_cursor_) SetCursor(heartbeat, *cursor_);
      }
    }
    if (!status.ok()) return status;
  }
  *event = std::move(ready_.front());
  ready_.pop_front();
  sent_at_ = clock_.MonotonicNow();
  return Pull::kMessage;
}

// Drops a cursor of another feed: its sequences mean other changes here.
absl::Status ChangeSource::CheckFeed() {
  ASSIGN_OR_RETURN(feed_identity_, feed_.Identity());
  if (feed_identity_.empty()) return absl::InternalError("the change feed has no identity");
  if (!cursor_feed_.empty() && cursor_feed_ != feed_identity_) cursor_.reset();
  return absl::OkStatus();
}

absl::Status ChangeSource::BeginSnapshot() {
  ASSIGN_OR_RETURN(snapshot_cursor_, feed_.Last());
  in_snapshot_ = true;
  runs_done_ = changes_ == FollowedChanges::kIdentities;
  runs_page_.clear();
  redeliveries_done_ = changes_ != FollowedChanges::kAll;
  redeliveries_page_.clear();
  ready_.emplace_back().mutable_snapshot_begin()->set_feed(feed_identity_);
  return absl::OkStatus();
}

absl::Status ChangeSource::ContinueSnapshot() {
  if (!runs_done_) {
    ASSIGN_OR_RETURN(const auto page, store_.ListRuns(runs_page_, kRunsPage));
    for (const RunRecord& run : page.items) {
      AddRun(run);
      if (SendsPairsOf(run)) runs_with_pairs_.push_back(run.id);
    }
    runs_page_ = page.next;
    runs_done_ = runs_page_.empty();
    return absl::OkStatus();
  }
  if (!redeliveries_done_) {
    ASSIGN_OR_RETURN(const auto page,
                     store_.RequestedRedeliveries("", redeliveries_page_, kRedeliveriesPage));
    for (const ResultKey& key : page.items) AddRedelivery(key, /*requested=*/true);
    redeliveries_page_ = page.next;
    redeliveries_done_ = redeliveries_page_.empty();
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const auto revocations, store_.Revocations());
  for (const RevocationRecord& revocation : revocations) {
    ready_.emplace_back().mutable_revoked()->set_subject(revocation.subject);
  }
  ASSIGN_OR_RETURN(const auto operators, store_.NewestOfEach(operators_));
  for (const IssuedRecord& newest : operators) AddOperator(newest);
  Event& end = ready_.emplace_back();
  end.mutable_snapshot_end();
  SetCursor(end, snapshot_cursor_);
  cursor_ = snapshot_cursor_;
  in_snapshot_ = false;
  return absl::OkStatus();
}

// Reads one page of the pairs of the first queued run.
absl::Status ChangeSource::ReadPairs() {
  const std::string& run = runs_with_pairs_.front();
  ASSIGN_OR_RETURN(auto page, store_.ListPairs(run, pairs_page_, kPairsPage));
  for (PairRecord& pair : page.items) AddPair(run, std::move(pair));
  pairs_page_ = page.next;
  if (!pairs_page_.empty()) return absl::OkStatus();
  runs_with_pairs_.pop_front();
  if (pending_created_) {
    StampLast(*pending_created_);
    pending_created_.reset();
  }
  return absl::OkStatus();
}

absl::Status ChangeSource::ReadChanges() {
  const auto changes = feed_.Read(*cursor_, static_cast<int>(kChangesPage));
  if (!changes.ok()) {
    if (ReasonOf(changes.status()) != "CURSOR_COMPACTED") return changes.status();
    cursor_.reset();  // the feed no longer contains this cursor
    return absl::OkStatus();
  }
  full_page_ = changes->size() == kChangesPage;
  for (const ChangeRecord& change : *changes) {
    cursor_ = change.sequence;
    RETURN_IF_ERROR(AddChange(change));
    // The pairs of a new run precede their changes.
    if (!runs_with_pairs_.empty()) break;
  }
  return absl::OkStatus();
}

bool ChangeSource::Sends(ChangeKind kind) const {
  switch (changes_) {
    case FollowedChanges::kIdentities:
      return kind == ChangeKind::kRevoked || kind == ChangeKind::kOperator;
    case FollowedChanges::kRuns:
      return kind != ChangeKind::kResult && kind != ChangeKind::kRedelivery;
    case FollowedChanges::kAll:
      break;
  }
  return true;
}

absl::Status ChangeSource::AddChange(const ChangeRecord& change) {
  if (!Sends(change.kind)) return absl::OkStatus();
  switch (change.kind) {
    case ChangeKind::kRun:
    case ChangeKind::kRunCreated: {
      ASSIGN_OR_RETURN(const auto view, store_.GetRun(change.run));
      if (!view) return absl::OkStatus();  // deleted since then: that change follows
      // The row is that of now. A follower would see a run end without results that it has: the
      // change that ended the run follows after them.
      if (change.kind == ChangeKind::kRun && IsFinal(view->run.state) &&
          change.sequence < view->last_result_change) {
        return absl::OkStatus();
      }
      AddRun(view->run);
      if (change.kind == ChangeKind::kRunCreated && SendsPairsOf(view->run)) {
        runs_with_pairs_.push_back(change.run);
        pending_created_ = change;
        return absl::OkStatus();
      }
      break;
    }
    case ChangeKind::kResult: {
      v1::FollowChangesResponse::PairChanged* pair = NewPair(change.run, change.plugin);
      pair->set_node(change.node);
      pair->set_outcome(ToProto(change.outcome));
      pair->set_generation(change.generation);
      pair->set_size(change.size);
      if (!change.text.empty()) pair->set_error(change.text);
      *pair->mutable_time() = ToTimestamp(change.at);
      pairs_bytes_ += change.text.size();
      break;
    }
    case ChangeKind::kRedelivery:
      AddRedelivery({change.run, change.plugin, change.node}, !change.text.empty());
      break;
    case ChangeKind::kRunDeleted:
      ready_.emplace_back().mutable_run_deleted()->set_run(change.run);
      break;
    case ChangeKind::kRevoked:
      ready_.emplace_back().mutable_revoked()->set_subject(change.text);
      break;
    case ChangeKind::kOperator: {
      ASSIGN_OR_RETURN(const auto newest, store_.NewestIssued(change.text));
      if (!newest) return absl::OkStatus();  // expired long ago
      AddOperator(*newest);
      break;
    }
  }
  StampLast(change);
  return absl::OkStatus();
}

// Sets the cursor of the last event of `change`: after it the follower has processed the change.
void ChangeSource::StampLast(const ChangeRecord& change) {
  if (ready_.empty()) return;
  SetCursor(ready_.back(), change.sequence);
  *ready_.back().mutable_time() = ToTimestamp(change.at);
}

void ChangeSource::SetCursor(Event& event, int64_t cursor) {
  event.set_cursor(cursor);
  sent_cursor_ = cursor;
}

// The pairs of a run that has ended are sent on request: otherwise each start of a follower would
// take longer with each run that the aggregator keeps.
bool ChangeSource::SendsPairsOf(const RunRecord& run) const {
  return changes_ == FollowedChanges::kAll && !IsFinal(run.state);
}

void ChangeSource::AddRun(const RunRecord& run) {
  *ready_.emplace_back().mutable_run() = ToProto(run);
}

void ChangeSource::AddRedelivery(const ResultKey& key, bool requested) {
  v1::FollowChangesResponse::RedeliveryChanged& redelivery =
      *ready_.emplace_back().mutable_redelivery();
  redelivery.set_run(key.run);
  redelivery.set_plugin(key.plugin);
  redelivery.set_node(key.node);
  redelivery.set_requested(requested);
}

void ChangeSource::AddOperator(const IssuedRecord& newest) {
  v1::FollowChangesResponse::OperatorRecorded& recorded =
      *ready_.emplace_back().mutable_operator_recorded();
  recorded.set_uri(newest.uri);
  *recorded.mutable_expires() = ToTimestamp(newest.expires_at);
}

// Returns a new entry for a pair: in the last ready event if it fits there, otherwise in a new
// event.
v1::FollowChangesResponse::PairChanged* ChangeSource::NewPair(const std::string& run,
                                                              const std::string& plugin) {
  const bool fits = !ready_.empty() && ready_.back().has_pairs() &&
                    ready_.back().pairs().pairs_size() < kPairsOfEvent &&
                    pairs_bytes_ < kTextsOfEvent && ready_.back().pairs().plugin() == plugin &&
                    ready_.back().pairs().run() == run;
  if (!fits) {
    v1::FollowChangesResponse::PairsChanged& pairs = *ready_.emplace_back().mutable_pairs();
    pairs.set_run(run);
    pairs.set_plugin(plugin);
    pairs_bytes_ = 0;
  }
  return ready_.back().mutable_pairs()->add_pairs();
}

void ChangeSource::AddPair(const std::string& run, PairRecord record) {
  v1::FollowChangesResponse::PairChanged* pair = NewPair(run, record.plugin);
  pairs_bytes_ += record.error.size();
  pair->set_node(std::move(record.node));
  pair->set_outcome(ToProto(record.outcome));
  pair->set_generation(record.generation);
  pair->set_size(record.size);
  if (!record.error.empty()) pair->set_error(std::move(record.error));
  if (record.committed_at != 0) *pair->mutable_time() = ToTimestamp(record.committed_at);
}

}  // namespace muster
