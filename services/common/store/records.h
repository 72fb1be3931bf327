// What the aggregator remembers, as plain values: the vocabulary of every StateStore driver.
//
// Times are microseconds since the Unix epoch, given by the service (a store has no clock).
// Sizes are bytes. Digests are raw bytes: 32 for SHA-256, empty where there is none.
#ifndef MUSTER_SERVICES_COMMON_STORE_RECORDS_H_
#define MUSTER_SERVICES_COMMON_STORE_RECORDS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster {

// Numbers are stored: never renumber.
enum class RunState {
  kPlanned = 1,         // nothing has been delivered yet
  kRunning = 2,         // at least one delivery was begun
  kPostProcessing = 3,  // every planned pair has an outcome; the archive is being built
  kComplete = 4,        // sealed: the archive exists and nothing changes any more
  kFailed = 5,          // ended without an archive; `reason` says why
  kCancelled = 6,       // ended by an operator
};

inline bool IsFinal(RunState state) { return state >= RunState::kComplete; }

enum class Outcome {
  kPending = 0,   // nothing final yet
  kGenuine = 1,   // what the plugin produced
  kError = 2,     // the agent or the aggregator says why there is nothing
  kTimedOut = 3,  // the deadline passed, or its sender fell silent; partial data may be kept
};

// Where the bytes of a result are: inline in the store (up to kInlineLimit), or in a blob.
inline constexpr int64_t kInlineLimit = 64 * 1024;

// How much of an error's text is kept in its row, for people to read; all of it is its body.
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
  bool has_image = false;       // needs a container: a sidecar delivers, not an agent
  std::string result_format;    // junit, gojson, raw, manual
  std::string definition_yaml;  // as given, verbatim
};

struct PlannedPair {
  std::string plugin;
  std::string node;
};

// A run's own certificate authority. The key is encrypted by identity/key_wrap.h and wiped with
// everything else here when the authority ends.
struct RunAuthorityRecord {
  std::string fleet_signed_pem;  // vouched for by the fleet's intermediate, name-constrained
  std::string self_signed_pem;   // the same key and subject, for old clients to pin
  std::string wrapped_key;
  int64_t ends_at = 0;  // no credential of this run is valid later
};

// A door of the run's own: for old clients, or for those who ask for its status.
struct ListenerRecord {
  std::vector<std::string> hosts;  // advertised names and addresses
  int32_t port = 0;                // 0: not chosen yet; kept for the life of the run
  bool open = false;               // the gateway reported that it listens
  std::string fault;               // why it could not be opened, if it could not
};

// What a run's own status listener serves and admits. The key is encrypted by identity/key_wrap.h;
// all of it is wiped with the run's authority.
struct StatusListenerRecord {
  std::string client_ca_pem;    // empty: none was brought
  std::string certificate_pem;  // empty, with the key: the fleet's own certificate
  std::string wrapped_key;
};

struct ArchiveRecord {
  std::string blob;       // empty: none
  std::string file_name;  // YYYYMMDDHHMM_muster_<run>.tar.gz
  int64_t size = 0;
  std::string sha256;
  int64_t created_at = 0;
};

struct RunRecord {
  std::string id;          // 16 lower-case hex digits
  std::string request_id;  // creating again with the same one gives this run
  std::string title;       // free text of the operator, may be empty
  std::string created_by;  // URI of the operator
  RunState state = RunState::kPlanned;
  std::string reason;  // why it failed or was cancelled
  int64_t created_at = 0;
  int64_t deadline_at = 0;
  int64_t seal_grace = 0;   // microseconds after the deadline in which stragglers still count
  int64_t start_grace = 0;  // microseconds from the creation until nobody has come; 0: no limit
  int64_t lost_after = 0;   // microseconds of silence after which a pair counts as lost
  bool fail_fast = false;   // the first time-out fails the run
  int64_t settled_at = 0;   // when the last pair had an outcome; 0: one is pending
  int64_t ended_at = 0;     // when the state became final
  int64_t planned = 0;      // pairs by outcome: planned = pending + genuine + errors + timed_out
  int64_t pending = 0;
  int64_t genuine = 0;
  int64_t errors = 0;
  int64_t timed_out = 0;
  ListenerRecord listener;
  std::optional<ListenerRecord> status_listener;  // nullopt: the run shares the fleet's
  ArchiveRecord archive;
  std::vector<PluginRecord> plugins;
};

// Who delivered, and how far that is proven.
struct Delivery {
  std::string uri;  // verified identity of the deliverer (behind the gateway: its client)
  bool node_unproven = false;  // by a credential that is good for any node of the plugin
  // URI of the gateway for a legacy PUT, of the relay for what it forwarded; empty: direct.
  std::string vouched_by;
  std::string signature;   // the node's signature over what it delivered; empty if none
  std::string signer_pem;  // the certificate it verifies with
};

// A result, or an error in its place. Immutable; size, crc32c and sha256 were verified before.
struct ResultRecord {
  ResultKey key;
  Outcome outcome = Outcome::kPending;
  int64_t generation = 0;  // 1, 2, ...: a genuine result that replaces an error gets the next one
  int64_t size = 0;
  uint32_t crc32c = 0;
  std::string sha256;
  std::string media_type;
  std::string file_name;  // as delivered; stored and archived under a safe name
  std::string body;       // the bytes, if inline
  std::string blob;       // the blob's name, if not inline
  std::string error;      // why there is nothing (kError, kTimedOut)
  Delivery delivery;
  int64_t committed_at = 0;
  // A time-out keeps what had arrived until then.
  std::string partial_blob;
  int64_t partial_size = 0;
};

// A resumable transfer towards a result.
struct UploadRecord {
  std::string id;  // 32 lower-case hex digits
  ResultKey key;
  int64_t attempt = 0;  // the sender's number; the same key and attempt give the same upload
  int64_t epoch = 0;    // rises with each open: a stream with a lower one is dead
  int64_t size = -1;    // -1: known only at finish
  std::string sha256;   // named by the sender beforehand, or empty
  std::string media_type;
  std::string file_name;
  bool is_error = false;  // what arrives explains why there is no result
  Delivery delivery;
  int64_t opened_at = 0;
  int64_t expires_at = 0;
};

enum class ChangeKind {
  kRun = 1,         // the state, counters, listener or archive of a run changed
  kResult = 2,      // a result was committed or replaced
  kRunDeleted = 3,  // the run and everything of it is gone
  kRevoked = 4,     // an identity or a certificate was revoked
  kRunCreated = 5,  // a run and its plan came to be
};

// One entry of the change feed. It names what changed and carries what a follower needs.
struct ChangeRecord {
  int64_t sequence = 0;  // 1, 2, ... without gaps, in the order of commits
  int64_t at = 0;
  ChangeKind kind = ChangeKind::kRun;
  std::string run;
  std::string plugin;  // kResult
  std::string node;    // kResult
  Outcome outcome = Outcome::kPending;
  int64_t generation = 0;
  int64_t size = 0;
  std::string text;  // kResult: the error; kRevoked: the identity, or "issuer key id:serial"
};

struct RevocationRecord {
  std::string subject;  // a URI, or "<issuer key id hex>:<serial hex>"
  std::string reason;
  std::string revoked_by;
  int64_t at = 0;
};

// A certificate that the aggregator signed for a user, a service, a sidecar or a node.
struct IssuedRecord {
  std::string uri;
  std::string issuer;     // issuer key id, hex
  std::string serial;     // hex
  std::string issued_to;  // URI of who asked
  int64_t issued_at = 0;
  int64_t expires_at = 0;
};

// A certificate is remembered for this long after its end, in microseconds.
inline constexpr int64_t kIssuedKept = int64_t{7} * 24 * 3600 * 1'000'000;

// Join tokens that have not been forgotten, at a time.
inline constexpr int kMaxJoinTokens = 1'000;

// Names of who joined with a token, where it is shown.
inline constexpr int kListedJoins = 20;

using Labels = std::map<std::string, std::string>;

// What lets machines join the fleet for a while.
struct JoinTokenRecord {
  std::string id;
  std::string public_key_pem;
  std::string node;   // the only one that may join with it; empty: any
  int32_t count = 1;  // how many may
  Labels labels;      // for those who join
  std::string created_by;
  int64_t created_at = 0;
  int64_t expires_at = 0;
  bool revoked = false;
  std::vector<std::string> joined;  // the last kListedJoins, in that order
  int32_t joined_count = 0;
  bool relay = false;                // who joins becomes a relay
  std::vector<std::string> parents;  // names of the relays to hang below, in the order of the tries
};

// An enrolled node, or a relay: they share one register of names.
struct NodeRecord {
  std::string name;
  std::string uri;
  Labels labels;
  int64_t joined_at = 0;
  std::string join_token;  // the last it joined with
  int64_t expires_at = 0;  // of its newest certificate; 0: long ago
  int64_t revoked_at = 0;  // 0: it is not
  std::string revoke_reason;
  std::string revoked_by;  // URI of the operator
  bool relay = false;
  std::vector<std::string> relay_targets;  // "host:port", of a relay, as it said when it joined
  std::vector<std::string> join_targets;   // "host:port", of a relay
  std::vector<std::string> parents;        // as its last token said
};

enum class AuditKind {
  kConflict = 1,    // another content for a result that is there
  kLate = 2,        // a delivery after the seal
  kReplaced = 3,    // a genuine result replaced an error
  kRefused = 4,     // not allowed (sampled)
  kCredential = 5,  // issued
  kRevocation = 6,
  kRun = 7,        // created, cancelled, deleted
  kUnplanned = 8,  // a delivery for a pair that is not in the plan
  kNode = 9,       // joined, labelled, revoked, removed; join tokens
  kExpired = 10,   // what a relay had taken could not be delivered in time
  kShare = 11,     // an operator removed a shared file
};

struct AuditRecord {
  int64_t sequence = 0;
  int64_t at = 0;
  AuditKind kind = AuditKind::kRun;
  std::string actor;  // URI
  ResultKey key;      // as far as it applies
  std::string text;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_STORE_RECORDS_H_
