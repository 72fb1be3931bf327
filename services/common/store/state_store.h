// The state of the aggregator: typed, batched commands and consistent reads, without SQL in its
// interface.
//
// A command is durable before its callback runs. Drivers group concurrent commands into one commit,
// so callers should issue many concurrently instead of waiting for each.
#ifndef MUSTER_SERVICES_COMMON_STORE_STATE_STORE_H_
#define MUSTER_SERVICES_COMMON_STORE_STATE_STORE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/status_macros.h"
#include "services/common/store/commands.h"
#include "services/common/store/records.h"

namespace muster {

// One page of a listing. `next` continues it; empty at the end. Tokens remain valid while rows are
// added and removed.
template <typename T>
struct Page {
  std::vector<T> items;
  std::string next;
};

// Filters are exact; empty means any.
struct ResultFilter {
  std::string run;  // required
  std::string plugin;
  std::string node;
  bool with_pending = false;  // also pairs without an outcome (generation 0)
};

// A run with the values that change too often for RunRecord.
struct RunView {
  RunRecord run;
  int64_t last_change = 0;         // sequence of the newest change of this run in the feed
  int64_t last_result_change = 0;  // of the newest one about a result of it
};

// Thread-safe. Every method except Apply may wait for the disk: never call them on a gRPC thread.
class StateStore {
 public:
  virtual ~StateStore() = default;

  // Applies a command. `done` runs on the store's own thread after the commit, in the order of the
  // calls, and must not block. If the queue is full, `done` runs immediately with
  // RESOURCE_EXHAUSTED and a retry delay.
  template <typename C>
  void Apply(C command, absl::AnyInvocable<void(absl::StatusOr<typename C::Result>)> done) {
    Enqueue(Command(std::move(command)),
            [done = std::move(done)](absl::StatusOr<CommandResult> result) mutable {
              if (!result.ok()) {
                done(result.status());
              } else {
                done(std::get<typename C::Result>(*std::move(result)));
              }
            });
  }

  // Applies a command and waits for its outcome. Must not be called on the store's own thread.
  template <typename C>
  absl::StatusOr<typename C::Result> ApplyAndWait(C command) {
    ASSIGN_OR_RETURN(auto result, EnqueueAndWait(Command(std::move(command))));
    return std::get<typename C::Result>(std::move(result));
  }

  virtual absl::StatusOr<std::optional<RunView>> GetRun(std::string_view run) = 0;

  // Newest first. `limit` is at most 1000.
  virtual absl::StatusOr<Page<RunRecord>> ListRuns(std::string_view page_token, int limit) = 0;

  // Returns runs that have not ended, and runs whose CA was not deleted yet: all runs that need
  // timers after a start. Bounded by the number of live runs.
  virtual absl::StatusOr<std::vector<RunView>> LiveRuns() = 0;

  // Returns the runs that have ended and are not pinned, in the order of their ends. `limit` is at
  // most 1000.
  virtual absl::StatusOr<Page<FinishedRun>> FinishedRuns(std::string_view page_token,
                                                         int limit) = 0;

  virtual absl::StatusOr<FinishedTotals> CountFinishedRuns() = 0;

  virtual absl::StatusOr<std::optional<RunAuthorityRecord>> GetAuthority(std::string_view run) = 0;

  // Returns the separate status listener of a run until its CA is deleted.
  virtual absl::StatusOr<std::optional<StatusListenerRecord>> GetStatusListener(
      std::string_view run) = 0;

  // Returns true if the run's plan contains this pair.
  virtual absl::StatusOr<bool> IsPlanned(const ResultKey& key) = 0;

  // Returns true if the run's plan contains a pair of this node.
  virtual absl::StatusOr<bool> IsNodePlanned(std::string_view run, std::string_view node) = 0;

  // Returns the current result, with its body if inline; kPending (generation 0) if there is none
  // yet; nullopt if the pair is not planned.
  virtual absl::StatusOr<std::optional<ResultRecord>> GetResult(const ResultKey& key) = 0;

  // Returns earlier generations of a pair (replaced errors), oldest first, without bodies.
  virtual absl::StatusOr<std::vector<ResultRecord>> History(const ResultKey& key) = 0;

  // Ordered by plugin and node; without bodies. `limit` is at most 10000.
  virtual absl::StatusOr<Page<ResultRecord>> ListResults(const ResultFilter& filter,
                                                         std::string_view page_token,
                                                         int limit) = 0;

  // Returns all pairs of a run, ordered by plugin and node: cheaper than ListResults. `limit` is at
  // most 10000.
  virtual absl::StatusOr<Page<PairRecord>> ListPairs(std::string_view run,
                                                     std::string_view page_token, int limit) = 0;

  virtual absl::StatusOr<std::optional<UploadRecord>> GetUpload(std::string_view id) = 0;

  // Returns every open upload of a run, or of all runs if `run` is empty.
  virtual absl::StatusOr<std::vector<UploadRecord>> OpenUploads(std::string_view run) = 0;

  // Returns at most `limit` open uploads that expired before `now`, in the order of their expiry.
  virtual absl::StatusOr<std::vector<UploadRecord>> ExpiredUploads(int64_t now, int limit) = 0;

  virtual absl::StatusOr<std::vector<RevocationRecord>> Revocations() = 0;

  // Returns the newest certificate of each URI that begins with `prefix`, ordered by URI.
  virtual absl::StatusOr<std::vector<IssuedRecord>> NewestOfEach(std::string_view prefix) = 0;

  // Returns the newest certificate of this URI; nullopt if none is recorded.
  virtual absl::StatusOr<std::optional<IssuedRecord>> NewestIssued(std::string_view uri) = 0;

  // Returns the certificate with this issuer and serial; nullopt if it is not recorded.
  virtual absl::StatusOr<std::optional<IssuedRecord>> FindIssued(std::string_view issuer,
                                                                 std::string_view serial) = 0;

  virtual absl::StatusOr<std::optional<JoinTokenRecord>> GetJoinToken(std::string_view id) = 0;

  // Newest first, at most `limit`.
  virtual absl::StatusOr<std::vector<JoinTokenRecord>> ListJoinTokens(int limit) = 0;

  virtual absl::StatusOr<std::optional<NodeRecord>> GetNode(std::string_view name) = 0;

  // Ordered by name; only nodes with all of `labels`. `limit` is at most 1000.
  virtual absl::StatusOr<Page<NodeRecord>> ListNodes(const Labels& labels,
                                                     std::string_view page_token, int limit) = 0;

  // Returns records in the order of their creation, or in reverse. A page may have fewer than
  // `limit` records (at most 10000) although more follow, because a driver examines a limited
  // number.
  virtual absl::StatusOr<Page<AuditRecord>> Audit(const AuditFilter& filter,
                                                  std::string_view page_token, int limit) = 0;

  // Returns the number of stored results and archives that are damaged.
  virtual absl::StatusOr<int64_t> DamagedResults() = 0;

  // Returns the damaged results that their nodes are asked to deliver again, ordered by key: of one
  // run, or of all if `run` is empty. `limit` is at most 1000.
  virtual absl::StatusOr<Page<ResultKey>> RequestedRedeliveries(std::string_view run,
                                                                std::string_view page_token,
                                                                int limit) = 0;

  // Reads every page of the state, and fails with DATA_LOSS if one is damaged. May take minutes.
  // CANCELLED soon after `stop` was set.
  virtual absl::Status CheckState(std::atomic<bool>& stop) = 0;

  // Returns the position that SaveScrubPosition stored last; empty: none.
  virtual absl::StatusOr<std::string> ScrubPosition() = 0;

 protected:
  virtual void Enqueue(Command command,
                       absl::AnyInvocable<void(absl::StatusOr<CommandResult>)> done) = 0;

 private:
  absl::StatusOr<CommandResult> EnqueueAndWait(Command command);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_STORE_STATE_STORE_H_
