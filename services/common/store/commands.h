// The changes that a StateStore can make. Each is one atomic step with a typed outcome; a driver
// may put many into one transaction. Nothing here knows of SQL.
//
// Refusals are outcomes, not errors: a driver answers with an error status only if it could not
// decide (disk, corruption), and then nothing has changed.
#ifndef MUSTER_SERVICES_COMMON_STORE_COMMANDS_H_
#define MUSTER_SERVICES_COMMON_STORE_COMMANDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "services/common/store/records.h"

namespace muster {

// Creates a run with its plan and its authority, in state kPlanned. `run.planned`, `pending` and
// the other counters are set by the store from `pairs`.
struct CreateRun {
  RunRecord run;
  std::vector<PlannedPair> pairs;
  RunAuthorityRecord authority;

  struct Result {
    std::string run;       // the new run's id, or the earlier one's
    bool existed = false;  // a run with this request_id was there: nothing was changed
  };
};

// What the gateway says of the run's listener. A port, once set, is never changed by this.
struct ReportListener {
  std::string run;
  ListenerRecord listener;
  int64_t at = 0;

  struct Result {
    bool found = false;
    ListenerRecord listener;  // as it is now
  };
};

// Gives a run a status listener of its own, once and before the run has ended.
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

// As ReportListener, for the run's own status listener; its hosts stay as they were set.
struct ReportStatusListener {
  std::string run;
  ListenerRecord listener;
  int64_t at = 0;

  struct Result {
    bool found = false;  // false: no such run, or it has no status listener of its own
    ListenerRecord listener;
  };
};

// Opens an upload or takes over an open one (same key: the epoch rises, the id and the bytes stay
// if `attempt` is the same; a higher attempt starts a new upload and abandons the old one).
struct OpenUpload {
  UploadRecord upload;  // id: to be used if a new one is made; epoch is ignored
  int64_t at = 0;

  enum class Verdict {
    kOpen,        // upload: go on from there
    kNotPlanned,  // the plan of the run does not name this pair
    kRunNotFound,
    kCommitted,     // committed: a genuine result is there (errors may be replaced)
    kSealed,        // the run is complete, or its seal grace is over (kCommitted instead if the
                    // SHA-256 that the sender named is the one that is there)
    kCancelled,     // the run was cancelled or failed
    kStaleAttempt,  // a higher attempt was opened before
  };
  struct Result {
    Verdict verdict = Verdict::kOpen;
    UploadRecord upload;
    bool created = false;                   // else taken over
    std::optional<ResultRecord> committed;  // a genuine result that is there, without its body
    std::string abandoned;                  // id of the upload that this one replaced, or empty
  };
};

// Commits a result. `result.generation` is set by the store. If the pair was the last without an
// outcome, the run goes to kPostProcessing in the same transaction. Ends the pair's open upload
// when `upload_id` names it; an upload that was taken over (epoch), or has ended, cannot commit,
// also not the content that is there.
struct CommitResult {
  ResultRecord result;
  std::string upload_id;  // empty: a small result, delivered in one piece
  int64_t epoch = 0;
  // An error that a relay writes for what it had taken and could not deliver in time: audited.
  bool expired_at_relay = false;

  enum class Verdict {
    kCommitted,  // stored, durable
    kSame,       // this content was there already: a success of the upload's owner, also after
                 // the seal
    kConflict,   // another content is there: audited, not stored
    kNotPlanned,
    kRunNotFound,
    kSealed,  // audited
    kCancelled,
    kTakenOver,  // a later open owns the upload, or it has ended
    kErrorKept,  // an error after a genuine result or after another error: ignored, audited
  };
  struct Result {
    Verdict verdict = Verdict::kCommitted;
    ResultRecord head;  // what is there now, without its body
    bool last = false;  // this was the last pair: the run moved on
    // No result, current or replaced, and no later owner of the upload needs the blob of the
    // command: the caller removes it.
    bool blob_unused = false;
  };
};

// Forgets an open upload without a result (expired, or given up by its sender).
struct AbandonUpload {
  std::string upload_id;

  struct Result {
    bool found = false;
  };
};

// Gives every pending pair of a run the outcome kTimedOut with `error` and moves the run to
// kPostProcessing; a run that fails fast goes to kFailed if there was one. Open uploads stay: a
// genuine result still replaces such an outcome until the seal.
struct TimeOutRun {
  std::string run;
  std::string error;
  int64_t at = 0;
  std::string actor;  // whom the audit log names if the run fails by this

  struct Result {
    bool changed = false;  // false: no such run, or it had moved on
    int64_t timed_out = 0;
  };
};

// Gives one pair the outcome kTimedOut with `error` if it is pending and its run has not ended.
// What follows is as for TimeOutRun: the last pair moves the run on, and a run that fails fast has
// failed.
struct TimeOutPair {
  ResultKey key;
  std::string error;
  std::string actor;  // whom the audit log names if the run fails by this
  int64_t at = 0;

  struct Result {
    bool changed = false;  // false: no such pair, or it has an outcome, or the run has ended
    bool failed = false;   // the run failed by it
  };
};

// What had arrived for a pair when its time was over.
struct PartialData {
  std::string plugin;
  std::string node;
  std::string blob;
  int64_t size = 0;
};

// The end of a run's seal grace: keeps what had arrived of pairs that timed out (ignored for pairs
// with a genuine result) and ends every open upload of the run.
struct KeepPartials {
  std::string run;
  std::vector<PartialData> partial;
  int64_t at = 0;

  struct Result {
    std::vector<std::string> unused;  // blobs of `partial` that were ignored: to be removed
  };
};

// Moves a run to kComplete with its archive. Refused (changed = false) if the run is not in
// kPostProcessing or if a result was committed, or partial data kept, since `expected_change` (the
// archive is stale then). Open uploads stay until their bytes are removed (AbandonUpload).
struct SealRun {
  std::string run;
  ArchiveRecord archive;
  int64_t expected_change = 0;  // RunView::last_change when the archive was begun
  int64_t at = 0;

  struct Result {
    bool changed = false;
  };
};

// Ends a run as kCancelled or kFailed; the end of one that nobody came to only while it is
// kPlanned.
struct EndRun {
  std::string run;
  RunState state = RunState::kCancelled;
  std::string reason;
  std::string actor;
  int64_t at = 0;
  bool only_planned = false;

  struct Result {
    bool found = false;
    bool changed = false;  // false: it had ended before, or was no longer planned
    RunState state = RunState::kPlanned;
  };
};

// Removes everything of a run that has ended, but for its audit records. The caller removes blobs.
struct DeleteRun {
  std::string run;
  std::string actor;
  int64_t at = 0;

  struct Result {
    bool found = false;
    bool deleted = false;  // false: it has not ended
  };
};

// Forgets a run's keys and closes its listeners: the run's credentials are worth nothing any more.
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
    bool changed = false;  // false: it was revoked before
  };
};

// Remembers a certificate. One for an enrolled node is not to be handed out unless that still is
// one: `node` is its name then, and empty for everybody else. The audit log has every certificate
// but those that nodes renew: there would soon be nothing else in it.
struct RecordIssued {
  IssuedRecord issued;
  std::string node;

  enum class Verdict { kRecorded, kNotEnrolled, kRevoked };
  struct Result {
    Verdict verdict = Verdict::kRecorded;
  };
};

// A new join token. Those that ended over a week ago are forgotten.
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

// A machine becomes a node (or a relay, if the token says so), or becomes it again: then the
// certificates of before are revoked. The certificate was signed before and is handed out only with
// kJoined.
struct JoinNode {
  std::string token;
  std::string name;
  std::string key_sha256;  // of the key that the certificate is for; tells a repeated request
  std::string certificate_chain_pem;
  IssuedRecord issued;                     // its uri, and `at`
  std::vector<std::string> relay_targets;  // of a relay
  std::vector<std::string> join_targets;

  enum class Verdict {
    kJoined,
    kAgain,    // this key has joined with this token: `certificate_chain_pem` is what it got
    kNoToken,  // there is none, or it was revoked
    kExpired,
    kUsed,       // every place is taken by other keys
    kOtherNode,  // the token names another, or this key joined as another
    kEnrolled,   // the name is taken, and the token does not name it or is for the other kind
    kRevoked,    // the node is
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

// Every certificate of the node that has not ended is revoked, and it gets no new one.
struct RevokeNode {
  std::string name;
  std::string reason;
  std::string actor;
  int64_t at = 0;

  struct Result {
    bool found = false;
  };
};

// The same, and the name is free again.
struct RemoveNode {
  std::string name;
  std::string actor;
  int64_t at = 0;

  struct Result {
    bool found = false;
  };
};

// Writes an audit record on its own; the other commands write theirs with what they do.
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
