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
#include <variant>
#include <vector>

#include "services/common/store/records.h"

namespace muster {

// Creates a run with its plan and its CA, in state kPlanned. The store sets `run.planned`,
// `pending` and the other counters from `pairs`.
struct CreateRun {
  RunRecord run;
  std::vector<PlannedPair> pairs;
  RunAuthorityRecord authority;

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
  std::string actor;
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
// and the id and the bytes remain. A higher attempt starts a new upload and abandons the old one.
struct OpenUpload {
  UploadRecord upload;  // id: for a new upload; epoch is ignored
  int64_t at = 0;

  enum class Verdict {
    kOpen,        // upload: resume it
    kNotPlanned,  // the plan of the run does not name this pair
    kRunNotFound,
    kCommitted,     // committed: a genuine result exists (errors may be replaced)
    kSealed,        // the run accepts no results; kCommitted if the SHA-256 is the committed one
    kCancelled,     // the run was cancelled or failed
    kStaleAttempt,  // a higher attempt was opened before
  };
  struct Result {
    Verdict verdict = Verdict::kOpen;
    UploadRecord upload;
    bool created = false;                   // false: taken over
    std::optional<ResultRecord> committed;  // an existing genuine result, without its body
    std::string abandoned;                  // id of the replaced upload, or empty
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
  // An error that a relay commits because it could not deliver a spooled result in time; audited.
  bool expired_at_relay = false;

  enum class Verdict {
    kCommitted,  // stored durably
    kSame,  // the same content exists: a success for the owner of the upload, also after the seal
    kConflict,  // other content exists: audited, not stored
    kNotPlanned,
    kRunNotFound,
    kSealed,  // audited
    kCancelled,
    kTakenOver,  // a later open owns the upload, or the upload has ended
    kErrorKept,  // an error after a genuine result or another error: ignored, audited
  };
  struct Result {
    Verdict verdict = Verdict::kCommitted;
    ResultRecord head;  // the current result, without its body
    bool last = false;  // this was the last pair: the run changed its state
    // No result, current or replaced, and no later owner of the upload needs the blob of the
    // command: the caller removes it.
    bool blob_unused = false;
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
// kPostProcessing, or if a result was committed or partial data stored since `expected_change`,
// because the archive is then outdated. Open uploads remain until their bytes are removed
// (AbandonUpload).
struct SealRun {
  std::string run;
  ArchiveRecord archive;
  int64_t expected_change = 0;  // RunView::last_change at the begin of the archive
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
  std::string actor;
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
  std::string actor;
  int64_t at = 0;

  struct Result {
    bool found = false;
    bool deleted = false;  // false: it has not ended
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

struct Revoke {
  RevocationRecord revocation;

  struct Result {
    bool changed = false;  // false: it was already revoked
  };
};

// Records a certificate. `node` is the name of an enrolled node, otherwise empty: the certificate
// must be handed out only if the node is still enrolled. The audit log contains every certificate
// except renewals of nodes, which would soon fill it.
struct RecordIssued {
  IssuedRecord issued;
  std::string node;

  enum class Verdict { kRecorded, kNotEnrolled, kRevoked };
  struct Result {
    Verdict verdict = Verdict::kRecorded;
  };
};

// Creates a join token. Also deletes tokens that expired more than a week ago.
struct CreateJoinToken {
  JoinTokenRecord token;

  enum class Verdict { kCreated, kExists, kTooMany, kNodeRevoked, kNoRelay };
  struct Result {
    Verdict verdict = Verdict::kCreated;
    std::string relay;  // kNoRelay: the parent that is not in the register, or is revoked
  };
};

struct RevokeJoinToken {
  std::string id;
  std::string actor;
  int64_t at = 0;

  struct Result {
    bool found = false;
  };
};

// Enrols a node (or a relay, if the token is for a relay). If it was enrolled before, its earlier
// certificates are revoked. The certificate was signed before; it is handed out only with kJoined.
struct JoinNode {
  std::string token;
  std::string name;
  std::string key_sha256;  // of the certified key; identifies a repeated request
  std::string certificate_chain_pem;
  IssuedRecord issued;                     // its uri and `at`
  std::vector<std::string> relay_targets;  // only of a relay
  std::vector<std::string> join_targets;

  enum class Verdict {
    kJoined,
    kAgain,    // the same key and token: returns the issued certificate
    kNoToken,  // the token does not exist or was revoked
    kExpired,
    kUsed,       // by other keys
    kOtherNode,  // the token or the key is for another name
    kEnrolled,   // an enrolled name of the other kind, or not in the token
    kRevoked,    // the node is revoked
  };
  struct Result {
    Verdict verdict = Verdict::kNoToken;
    std::string certificate_chain_pem;
  };
};

struct LabelNode {
  std::string name;
  Labels set;
  std::vector<std::string> remove;
  size_t max_labels = 0;
  std::string actor;
  int64_t at = 0;

  struct Result {
    bool found = false;
    bool too_many = false;  // nothing changed
  };
};

// Revokes every unexpired certificate of the node, which gets no new one.
struct RevokeNode {
  std::string name;
  std::string reason;
  std::string actor;
  int64_t at = 0;

  struct Result {
    bool found = false;
  };
};

// Revokes the node as RevokeNode does, and releases its name.
struct RemoveNode {
  std::string name;
  std::string actor;
  int64_t at = 0;

  struct Result {
    bool found = false;
  };
};

// Writes a single audit record; other commands write theirs in their transaction.
struct AppendAudit {
  AuditRecord record;

  struct Result {};
};

using Command =
    std::variant<CreateRun, ReportListener, SetStatusListener, ReportStatusListener, OpenUpload,
                 CommitResult, AbandonUpload, TimeOutRun, TimeOutPair, KeepPartials, SealRun,
                 EndRun, DeleteRun, WipeAuthority, Revoke, RecordIssued, CreateJoinToken,
                 RevokeJoinToken, JoinNode, LabelNode, RevokeNode, RemoveNode, AppendAudit>;

using CommandResult =
    std::variant<CreateRun::Result, ReportListener::Result, SetStatusListener::Result,
                 ReportStatusListener::Result, OpenUpload::Result, CommitResult::Result,
                 AbandonUpload::Result, TimeOutRun::Result, TimeOutPair::Result,
                 KeepPartials::Result, SealRun::Result, EndRun::Result, DeleteRun::Result,
                 WipeAuthority::Result, Revoke::Result, RecordIssued::Result,
                 CreateJoinToken::Result, RevokeJoinToken::Result, JoinNode::Result,
                 LabelNode::Result, RevokeNode::Result, RemoveNode::Result, AppendAudit::Result>;

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_STORE_COMMANDS_H_
