// The records of the aggregator as plain values: the vocabulary of every StateStore driver.
//
// Times are microseconds since the Unix epoch, set by the service (a store has no clock). Sizes are
// bytes. Digests are raw bytes: 32 for SHA-256, empty if there is none.
#ifndef MUSTER_SERVICES_COMMON_STORE_RECORDS_H_
#define MUSTER_SERVICES_COMMON_STORE_RECORDS_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "services/common/store/identity_records.h"  // IWYU pragma: export

namespace muster {

// Numbers are stored: never renumber.
enum class RunState {
  kPlanned = 1,         // no delivery has begun
  kRunning = 2,         // at least one delivery has begun
  kPostProcessing = 3,  // every planned pair has an outcome; the archive is being built
  kComplete = 4,        // sealed: the archive exists and is final
  kFailed = 5,          // ended without an archive; `reason` is set
  kCancelled = 6,       // ended by an operator
};

inline bool IsFinal(RunState state) { return state >= RunState::kComplete; }

enum class Outcome {
  kPending = 0,   // no final outcome yet
  kGenuine = 1,   // produced by the plugin
  kError = 2,     // the agent or the aggregator reports why there is no result
  kTimedOut = 3,  // the deadline passed, or the sender was lost; partial data may exist
};

// The bytes of a result are inline in the store (up to kInlineLimit) or in a blob.
inline constexpr int64_t kInlineLimit = 64 * 1024;

// The part of an error's text in its row, for humans; the body contains all of it.
inline constexpr int64_t kMaxErrorText = 4096;

struct ResultKey {
  std::string run;
  std::string plugin;
  std::string node;  // "global" for a plugin that runs once
  auto operator<=>(const ResultKey&) const = default;
};

struct PluginRecord {
  std::string name;
  bool once = false;            // a Job: one result, for the node "global"
  bool has_image = false;       // requires a container: a sidecar delivers, not an agent
  std::string result_format;    // junit, gojson, raw, manual
  std::string definition_yaml;  // unchanged
};

struct PlannedPair {
  std::string plugin;
  std::string node;
};

// The CA of a run. The key is encrypted by identity/key_wrap.h. The whole record is deleted at the
// end of the CA.
struct RunAuthorityRecord {
  std::string fleet_signed_pem;  // signed by the fleet's intermediate, name-constrained
  std::string self_signed_pem;   // the same key and subject, as the root of legacy clients
  std::string wrapped_key;
  int64_t ends_at = 0;  // every credential of this run expires before
};

// A listener of the run: for legacy clients, or for its status.
struct ListenerRecord {
  std::vector<std::string> hosts;  // advertised names and addresses
  int32_t port = 0;                // 0: not chosen yet; fixed for the life of the run
  bool open = false;               // the gateway reported that it listens
  std::string fault;               // the reason if it could not be opened
};

// The certificates of a run's separate status listener. The key is encrypted by
// identity/key_wrap.h. The record is deleted with the run's CA.
struct StatusListenerRecord {
  std::string client_ca_pem;    // empty: none was provided
  std::string certificate_pem;  // empty, like the key: the fleet's certificate is used
  std::string wrapped_key;
};

struct ArchiveRecord {
  std::string blob;       // empty: none
  std::string file_name;  // YYYYMMDDHHMM_muster_<run>.tar.gz
  int64_t size = 0;
  std::string sha256;
  int64_t created_at = 0;
  std::string damage;  // what a verification found damaged; empty: nothing
};

struct RunRecord {
  std::string id;          // 16 lower-case hex digits
  std::string request_id;  // a repeated creation with the same id returns this run
  std::string title;       // free text of the operator, may be empty
  std::string created_by;  // URI of the operator
  RunState state = RunState::kPlanned;
  std::string reason;  // the reason for kFailed or kCancelled
  int64_t created_at = 0;
  int64_t deadline_at = 0;
  int64_t seal_grace = 0;  // microseconds after the deadline in which late results are accepted
  int64_t start_grace =
      0;                   // microseconds from the creation until an agent must report; 0: no limit
  int64_t lost_after = 0;  // microseconds without heartbeats after which a pair is lost
  bool fail_fast = false;  // the first time-out fails the run
  int64_t settled_at = 0;  // the time of the last outcome; 0: a pair is pending
  int64_t ended_at = 0;    // the time of the final state
  bool ca_deleted = false;  // its CA, with its listeners and credentials
  int64_t planned = 0;      // pairs by outcome: planned = pending + genuine + errors + timed_out
  int64_t pending = 0;
  int64_t genuine = 0;
  int64_t errors = 0;
  int64_t timed_out = 0;
  int64_t damaged = 0;       // stored results, and the archive, that are damaged
  int64_t result_bytes = 0;  // of its results, also replaced ones and partial data
  bool pinned = false;       // retention does not delete it
  ListenerRecord listener;
  std::optional<ListenerRecord> status_listener;  // nullopt: the run uses the fleet's
  ArchiveRecord archive;
  std::string seal_fault;  // why the last attempt to seal the run failed
  std::vector<PluginRecord> plugins;
};

// Returns the stored bytes of a run, which its deletion returns.
inline int64_t StoredBytes(const RunRecord& run) { return run.result_bytes + run.archive.size; }

// A run that has ended, as retention sees it.
struct FinishedRun {
  std::string id;
  std::string title;
  int64_t ended_at = 0;
  int64_t bytes = 0;  // StoredBytes
};

// The runs that have ended.
struct FinishedTotals {
  int64_t runs = 0;  // without the pinned ones
  int64_t bytes = 0;
  int64_t pinned_runs = 0;
  int64_t pinned_bytes = 0;
};

// Returns the end of the seal grace of a run in kPostProcessing with timed-out pairs. The grace
// begins with the last outcome: at the deadline, or earlier if all missing pairs are lost.
inline int64_t SealGraceEnd(const RunRecord& run) {
  return std::min(run.settled_at, run.deadline_at) + run.seal_grace;
}

// The sender of a result, and the proof of its identity.
struct Delivery {
  std::string uri;             // verified identity of the sender (behind the gateway: its client)
  bool node_unproven = false;  // with a credential for any node of the plugin
  // URI of the gateway for a legacy PUT, or of the relay that forwarded the result; empty: direct.
  std::string vouched_by;
  std::string signature;   // the node's signature over the result; empty if none
  std::string signer_pem;  // the chain that verifies it; of a stored result only in GetResult
};

// The caller that changes something, as the audit log names it.
struct Actor {
  Actor() = default;
  // Implicit: most changes have no gateway.
  Actor(std::string actor_uri, std::string gateway = "")  // NOLINT(google-explicit-constructor)
      : uri(std::move(actor_uri)), vouched_by(std::move(gateway)) {}
  Actor(const char* actor_uri) : uri(actor_uri) {}  // NOLINT(google-explicit-constructor)

  std::string uri;
  std::string vouched_by;  // URI of the gateway that forwarded the call; empty: direct
};

// Returns the actor of a refused delivery. A relay names its nodes without their proof: it can fill
// neither the log nor the quota of a node.
inline Actor RefusalActor(const Delivery& delivery, bool proven) {
  const bool relayed = !proven && !delivery.node_unproven && !delivery.vouched_by.empty();
  return relayed ? Actor(delivery.vouched_by) : Actor(delivery.uri, delivery.vouched_by);
}

// A result, or an error in its place. Immutable; size, crc32c and sha256 are verified.
struct ResultRecord {
  ResultKey key;
  Outcome outcome = Outcome::kPending;
  int64_t generation = 0;  // 1, 2, ...: increases when a genuine result replaces an error
  int64_t size = 0;
  uint32_t crc32c = 0;
  std::string sha256;
  std::string media_type;
  std::string file_name;  // as delivered; stored and archived under a safe name
  std::string body;       // the bytes, if inline
  std::string blob;       // the blob's name, if not inline
  std::string error;      // the reason for the missing result (kError, kTimedOut)
  Delivery delivery;
  int64_t committed_at = 0;
  // The partial data of a time-out.
  std::string partial_blob;
  int64_t partial_size = 0;
  std::string damage;      // what a verification found damaged; only in GetResult and ListResults
  std::string redelivery;  // of a damaged result: kRedeliveryRequested, or why its node declined
};

// A planned pair and its current result, as far as followers of changes need them.
struct PairRecord {
  std::string plugin;
  std::string node;
  Outcome outcome = Outcome::kPending;
  int64_t generation = 0;
  int64_t size = 0;
  std::string error;
  int64_t committed_at = 0;  // 0: there is no result yet
};

// A resumable transfer of a result.
struct UploadRecord {
  std::string id;  // 32 lower-case hex digits
  ResultKey key;
  int64_t attempt = 0;  // from the sender; the same key and attempt give the same upload
  int64_t epoch = 0;    // increases with each open: a stream with a lower epoch is refused
  int64_t size = -1;    // -1: known only at finish
  std::string sha256;   // announced by the sender, or empty
  std::string media_type;
  std::string file_name;
  bool is_error = false;  // the content is an error result
  Delivery delivery;
  // The owner of the pair named the attempt in the last open: a sender with its credential, or a
  // relay with its signature.
  bool proven = true;
  int64_t opened_at = 0;
  int64_t expires_at = 0;
};

enum class ChangeKind {
  kRun = 1,         // state, counters, listener or archive of a run
  kResult = 2,      // a result was committed or replaced
  kRunDeleted = 3,  // the run was deleted
  kRevoked = 4,     // an identity or a certificate was revoked
  kRunCreated = 5,  // a run and its plan were created
  // A certificate of an operator was recorded.
  kOperator = 6,
  kRedelivery = 7,  // a damaged result is requested from its node, or is no longer
};

// One entry of the change feed, with the data that a follower needs.
struct ChangeRecord {
  int64_t sequence = 0;  // 1, 2, ... without gaps, in the order of commits
  int64_t at = 0;
  ChangeKind kind = ChangeKind::kRun;
  std::string run;
  std::string plugin;  // kResult, kRedelivery
  std::string node;    // kResult, kRedelivery
  Outcome outcome = Outcome::kPending;
  int64_t generation = 0;
  int64_t size = 0;
  // kResult: the error; kRevoked: the identity, or "issuer key id:serial"; kOperator: the URI;
  // kRedelivery: kRedeliveryRequested, or empty
  std::string text;
};

enum class AuditKind {
  kConflict = 1,    // other content for an existing result
  kLate = 2,        // a delivery after the seal
  kReplaced = 3,    // a genuine result replaced an error
  kRefused = 4,     // not permitted (sampled)
  kCredential = 5,  // a credential was issued
  kRevocation = 6,
  kRun = 7,        // created, ended, pinned, deleted
  kUnplanned = 8,  // a delivery for a pair that is not in the plan
  kNode = 9,       // joined, labelled, revoked, removed; join tokens
  kExpired = 10,   // a relay reported that it cannot deliver a spooled result
  kShare = 11,     // an operator removed a shared file
  kDamage = 12,    // a stored result was found damaged, or intact again
  kJob = 13,       // a job was submitted or cancelled
  // Changes of the jobs service.
  kTemplate = 14,     // a type or template was stored
  kDeployment = 15,   // created or cancelled
  kConformance = 16,  // the baseline was set or removed
  kSecret = 17,       // stored or deleted
  kWorkspace = 18,    // restored or unlocked
};

struct AuditRecord {
  int64_t sequence = 0;
  int64_t at = 0;
  AuditKind kind = AuditKind::kRun;
  std::string actor;  // URI
  // URI of the gateway or relay that vouches for the actor; empty: the actor called directly.
  std::string vouched_by;
  ResultKey key;  // the fields that apply
  // The identity or the certificate that was issued or revoked, or the id of a job.
  std::string subject;
  std::string text;
  int64_t count = 1;    // the equal events that this record stands for
  int64_t last_at = 0;  // the time of the last of them; only read

  void SetActor(const Actor& by) {
    actor = by.uri;
    vouched_by = by.vouched_by;
  }
};

// Returns true for deliveries that were refused: their senders determine the number of records.
inline bool IsRefusal(AuditKind kind) {
  return kind == AuditKind::kConflict || kind == AuditKind::kLate || kind == AuditKind::kRefused ||
         kind == AuditKind::kUnplanned;
}

// The limit of records of refusals by one actor within kAuditFold. Further ones are only counted,
// in the last record.
inline constexpr int64_t kMaxRefusals = 1'000;

// The number of audit records of a kind that are kept: fewer of the kinds that nodes and relays
// cause, so that none of them can erase the records of operators.
inline int64_t RetainedAudit(AuditKind kind) {
  const bool by_nodes =
      IsRefusal(kind) || kind == AuditKind::kReplaced || kind == AuditKind::kExpired;
  return by_nodes ? 100'000 : 1'000'000;
}

// An equal event within this time after a record is counted in it, in microseconds.
inline constexpr int64_t kAuditFold = int64_t{24} * 3600 * 1'000'000;

// Empty filters match every record.
struct AuditFilter {
  std::string run;
  std::string actor;
  std::string subject;
  std::vector<AuditKind> kinds;
  int64_t since = 0;  // records with an event at or after this time
  int64_t until = 0;  // records that began before this time; 0: any
  int64_t after = 0;  // records with a higher sequence
  bool newest_first = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_STORE_RECORDS_H_
