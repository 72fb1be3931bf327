// The commands of a StateStore. Each is one atomic step with a typed outcome; a driver may execute
// many in one transaction. Nothing here refers to SQL.
//
// Refusals are outcomes, not errors: a driver returns an error status only if it could not decide
// (disk, corruption), and then nothing has changed.
#ifndef MUSTER_SERVICES_COMMON_STORE_COMMANDS_H_
#define MUSTER_SERVICES_COMMON_STORE_COMMANDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "services/common/store/identity_commands.h"
#include "services/common/store/records.h"

namespace muster {

// Creates a run with its plan and its CA, in state kPlanned. The store sets `run.planned`,
// `pending` and the other counters from `pairs`.
struct CreateRun {
  RunRecord run;
  std::vector<PlannedPair> pairs;
  RunAuthorityRecord authority;
  std::string vouched_by = {};  // of `run.created_by`, as in Actor

  struct Result {
    std::string run;       // the id of the new run, or of the earlier one
    bool existed = false;  // a run with this request_id exists: nothing was changed
  };
};

// Stores the gateway's report about the run's listener. It never changes a port that is set.
struct ReportListener {
  std::string run;
  ListenerRecord listener;
  int64_t at = 0;

  struct Result {
    bool found = false;
    ListenerRecord listener;  // the current values
  };
};

// Creates the separate status listener of a run, once and before the run has ended.
struct SetStatusListener {
  std::string run;
  std::vector<std::string> hosts;  // as in ListenerRecord
  StatusListenerRecord listener;
  Actor actor;
  int64_t at = 0;

  enum class Verdict { kSet, kRunNotFound, kRunEnded, kExists };
  struct Result {
    Verdict verdict = Verdict::kSet;
  };
};

// Does the same for the run's separate status listener; its hosts do not change.
struct ReportStatusListener {
  std::string run;
  ListenerRecord listener;
  int64_t at = 0;

  struct Result {
    bool found = false;  // false: the run does not exist or has no separate status listener
    ListenerRecord listener;
  };
};

// Opens an upload or takes over an open one. For the same key and `attempt`, the epoch increases
// and the id and the bytes remain; size and digest of another `delivery` are forgotten. A higher
// attempt starts a new upload and abandons the old one. So does a proven open of an attempt that
// was proven before, if the last open was neither proven nor of the same `delivery`: its bytes may
// be any.
//
// From a proven open on, lower attempts are refused. The attempt of another open counts only
// against opens with the same `delivery`, while its upload is open: a relay must not exclude the
// node by a high number.
struct OpenUpload {
  UploadRecord upload;  // id: for a new upload; epoch is ignored
  int64_t at = 0;
  int64_t max_run_bytes = 0;  // as in CommitResult

  enum class Verdict {
    kOpen,        // upload: resume it
    kNotPlanned,  // the plan of the run does not name this pair
    kRunNotFound,
    kCommitted,  // committed: a genuine result exists (errors may be replaced)
    // The run accepts no results. With the committed SHA-256: kCommitted, or kOpen if it is
    // damaged.
    kSealed,
    kCancelled,     // the run was cancelled or failed
    kStaleAttempt,  // a higher attempt was opened before, or committed with a signature
    kRunFull,       // the announced size exceeds max_run_bytes
  };
  struct Result {
    Verdict verdict = Verdict::kOpen;
    UploadRecord upload;
    bool created = false;  // false: taken over
    // Taken over by the owner of the pair after an open without a proof: it must not continue the
    // bytes that came between.
    bool reclaimed = false;
    std::optional<ResultRecord> committed;  // an existing genuine result, without its body
    std::string abandoned;                  // id of the replaced upload, or empty
    int64_t run_bytes = 0;                  // kRunFull: RunRecord::result_bytes
    int64_t newest_attempt = 0;             // kStaleAttempt: the higher one
  };
};

// Commits a result. The store sets `result.generation`. If the pair was the last without an
// outcome, the run changes to kPostProcessing in the same transaction. Ends the pair's open upload
// if `upload_id` names it. An upload that was taken over (epoch) or has ended cannot commit, not
// even the existing content.
struct CommitResult {
  ResultRecord result;
  std::string upload_id;  // empty: a small result, delivered in one call
  int64_t epoch = 0;
  // Belongs to a result that the owner of its pair signed: lower attempts are refused from now on.
  // Otherwise 0.
  int64_t signed_attempt = 0;
  // An error by which a relay reports that it cannot deliver a spooled result: audited, never
  // stored, because the node may still have the result.
  bool relay_report = false;
  // The limit of RunRecord::result_bytes for genuine results; 0: none.
  int64_t max_run_bytes = 0;

  enum class Verdict {
    kCommitted,  // stored durably, or the damaged bytes of the same content were replaced
    kSame,  // the same content exists: a success for the owner of the upload, also after the seal
    kConflict,  // other content exists: audited, not stored
    kNotPlanned,
    kRunNotFound,
    kSealed,  // audited
    kCancelled,
    kTakenOver,  // a later open owns the upload, or the upload has ended
    kErrorKept,  // an error after a genuine result or another error, or of a relay: audited only
    kRunFull,    // the run would exceed max_run_bytes
  };
  struct Result {
    Verdict verdict = Verdict::kCommitted;
    ResultRecord head;      // the current result, without its body and its signer_pem
    bool last = false;      // this was the last pair: the run changed its state
    bool repaired = false;  // kCommitted: the damaged bytes of the same content were replaced
    // No result, current or replaced, and no later owner of the upload needs the blob of the
    // command: the caller removes it.
    bool blob_unused = false;
    int64_t run_bytes = 0;  // kRunFull: RunRecord::result_bytes
  };
};

// Removes an open upload without a result (expired, or abandoned by its sender).
struct AbandonUpload {
  std::string upload_id;

  struct Result {
    bool found = false;
  };
};

// Sets every pending pair of a run to kTimedOut with `error`, and the run to kPostProcessing. A
// fail-fast run with such a pair changes to kFailed. Open uploads remain: a genuine result replaces
// such an outcome until the seal.
struct TimeOutRun {
  std::string run;
  std::string error;
  int64_t at = 0;
  std::string actor;  // for the audit log if the run fails

  struct Result {
    bool changed = false;  // false: the run does not exist, or it changed its state before
    int64_t timed_out = 0;
  };
};

// Sets one pair to kTimedOut with `error` if it is pending and its run has not ended. The run then
// changes as for TimeOutRun: after its last pair, or if it is fail-fast.
struct TimeOutPair {
  ResultKey key;
  std::string error;
  std::string actor;  // for the audit log if the run fails
  int64_t at = 0;

  struct Result {
    bool changed = false;  // false: the pair does not exist or has an outcome, or the run has ended
    bool failed = false;   // the run failed because of it
  };
};

// The bytes that had arrived for a pair at the end of its time.
struct PartialData {
  std::string plugin;
  std::string node;
  std::string blob;
  int64_t size = 0;
};

// Ends a run's seal grace: stores the partial data of pairs that timed out (ignored for pairs with
// a genuine result) and ends every open upload of the run.
struct KeepPartials {
  std::string run;
  std::vector<PartialData> partial;
  int64_t at = 0;

  struct Result {
    std::vector<std::string> unused;  // ignored blobs of `partial`, which the caller removes
  };
};

// Sets a run to kComplete with its archive. Refused (changed = false) if the run is not in
// kPostProcessing, or if a result was committed or partial data stored since `begun_at_change`,
// because the archive is then outdated. Open uploads remain until their bytes are removed
// (AbandonUpload).
struct SealRun {
  std::string run;
  ArchiveRecord archive;
  int64_t begun_at_change = 0;  // RunView::last_change when the archive was begun
  int64_t at = 0;
  std::string actor;  // for the audit log

  struct Result {
    bool changed = false;
  };
};

// Stores why an attempt to seal a run failed, if the run is in kPostProcessing. SealRun clears it.
struct ReportSealFault {
  std::string run;
  std::string fault;
  int64_t at = 0;

  struct Result {
    bool changed = false;
  };
};

// Ends a run as kCancelled or kFailed. With `only_planned`, only a run in state kPlanned.
struct EndRun {
  std::string run;
  RunState state = RunState::kCancelled;
  std::string reason;
  Actor actor;
  int64_t at = 0;
  bool only_planned = false;

  struct Result {
    bool found = false;
    bool changed = false;  // false: the run had ended before, or is no longer planned
    RunState state = RunState::kPlanned;
  };
};

// Removes all records of a run that has ended, except its audit records. The caller removes blobs.
struct DeleteRun {
  std::string run;
  Actor actor;
  int64_t at = 0;
  // The rule of retention that deletes the run, for the audit log; a pinned run remains. Empty: an
  // operator deletes it, pinned or not.
  std::string rule;

  struct Result {
    bool found = false;
    bool deleted = false;  // false: it has not ended, or it is pinned
  };
};

// Pins a run in any state, so that retention does not delete it, or unpins it.
struct PinRun {
  std::string run;
  bool pinned = true;
  Actor actor;
  int64_t at = 0;

  struct Result {
    bool found = false;
    bool changed = false;
  };
};

// Deletes a run's keys and closes its listeners: no credential of the run is valid any more.
struct WipeAuthority {
  std::string run;
  int64_t at = 0;

  struct Result {
    bool changed = false;
  };
};

// Records what a verification found: the damage of a stored result, or that it is whole (empty).
// For an archive, plugin and node are empty and the generation is 0. A damaged genuine result is
// requested from its node, also if the node declined before the verification.
struct RecordDamage {
  ResultKey key;
  int64_t generation = 0;
  std::string blob;  // that was read: a repair keeps the generation, and stores another one
  std::string damage;
  Actor actor;
  int64_t at = 0;
  // A result that its node declined is not requested again. For a seal, which would otherwise wait
  // for a node that has answered.
  bool keep_declined = false;

  struct Result {
    bool current = false;  // false: the result was replaced, repaired or deleted meanwhile
    bool changed = false;
    std::string redelivery = {};  // as in ResultRecord, after the command
  };
};

// ResultRecord::redelivery of a damaged genuine result that its node is asked to deliver again.
inline constexpr std::string_view kRedeliveryRequested = "requested";

// Stores why the node of a damaged result cannot deliver it again, which ends the request for it.
struct DeclineRedelivery {
  ResultKey key;
  std::string reason;  // not empty
  Actor actor;
  int64_t at = 0;

  struct Result {
    bool found = false;     // the pair is planned
    bool declined = false;  // false: the result is not requested
  };
};

// Stores the position from which the verification of the store continues after a restart.
struct SaveScrubPosition {
  std::string position;

  struct Result {};
};

// Writes a single audit record, or counts it in an equal one; other commands write theirs in their
// transaction.
struct AppendAudit {
  AuditRecord record;
  // Does nothing if the subject, which is not empty, has an equal record of any time.
  bool once = false;

  struct Result {};
};

using Command =
    std::variant<CreateRun, ReportListener, SetStatusListener, ReportStatusListener, OpenUpload,
                 CommitResult, AbandonUpload, TimeOutRun, TimeOutPair, KeepPartials, SealRun,
                 EndRun, DeleteRun, WipeAuthority, Revoke, RecordIssued, CreateJoinToken,
                 RevokeJoinToken, JoinNode, LabelNode, RevokeNode, RemoveNode, RecordDamage,
                 SaveScrubPosition, AppendAudit, ReportSealFault, PinRun, DeclineRedelivery>;

using CommandResult = std::variant<
    CreateRun::Result, ReportListener::Result, SetStatusListener::Result,
    ReportStatusListener::Result, OpenUpload::Result, CommitResult::Result, AbandonUpload::Result,
    TimeOutRun::Result, TimeOutPair::Result, KeepPartials::Result, SealRun::Result, EndRun::Result,
    DeleteRun::Result, WipeAuthority::Result, Revoke::Result, RecordIssued::Result,
    CreateJoinToken::Result, RevokeJoinToken::Result, JoinNode::Result, LabelNode::Result,
    RevokeNode::Result, RemoveNode::Result, RecordDamage::Result, SaveScrubPosition::Result,
    AppendAudit::Result, ReportSealFault::Result, PinRun::Result, DeclineRedelivery::Result>;

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_STORE_COMMANDS_H_
