#include "services/common/store/sqlite/schema.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/errors/store.h"

namespace muster::sqlite {
namespace {

// Times are microseconds, names and texts TEXT, digests and keys BLOB ('' for none).
constexpr const char* kVersion1 = R"sql(
CREATE TABLE marks (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO marks VALUES ('clean', 'yes');  -- 'no' while a process has it open

CREATE TABLE runs (
  id TEXT NOT NULL PRIMARY KEY,
  request_id TEXT NOT NULL,
  title TEXT NOT NULL,
  created_by TEXT NOT NULL,
  state INTEGER NOT NULL,
  reason TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  deadline_at INTEGER NOT NULL,
  seal_grace INTEGER NOT NULL,
  ended_at INTEGER NOT NULL,
  planned INTEGER NOT NULL,
  pending INTEGER NOT NULL,
  genuine INTEGER NOT NULL,
  errors INTEGER NOT NULL,
  timed_out INTEGER NOT NULL,
  listener_hosts TEXT NOT NULL,       -- one a line
  listener_port INTEGER NOT NULL,
  listener_open INTEGER NOT NULL,
  listener_fault TEXT NOT NULL,
  archive_blob TEXT NOT NULL,
  archive_file_name TEXT NOT NULL,
  archive_size INTEGER NOT NULL,
  archive_sha256 BLOB NOT NULL,
  archive_created_at INTEGER NOT NULL,
  last_change INTEGER NOT NULL,       -- the newest entry of the feed about this run
  last_result_change INTEGER NOT NULL,  -- the newest one about a result of it
  refusals INTEGER NOT NULL           -- refused deliveries that were audited
);
CREATE UNIQUE INDEX runs_by_request ON runs (request_id) WHERE request_id <> '';
CREATE INDEX runs_by_age ON runs (created_at, id);
CREATE INDEX runs_live ON runs (state) WHERE state < 4;

CREATE TABLE run_plugins (
  run TEXT NOT NULL,
  position INTEGER NOT NULL,
  name TEXT NOT NULL,
  once INTEGER NOT NULL,
  has_image INTEGER NOT NULL,
  result_format TEXT NOT NULL,
  definition_yaml TEXT NOT NULL,
  PRIMARY KEY (run, position)
);

CREATE TABLE run_authorities (
  run TEXT NOT NULL PRIMARY KEY,
  fleet_signed_pem TEXT NOT NULL,
  self_signed_pem TEXT NOT NULL,
  wrapped_key BLOB NOT NULL,
  ends_at INTEGER NOT NULL
);

-- Deleted runs whose pairs and results are still being removed, some at a time.
CREATE TABLE deleted_runs (run TEXT NOT NULL PRIMARY KEY) WITHOUT ROWID;

-- The plan, with where each pair stands: small rows, read in order.
CREATE TABLE pairs (
  run TEXT NOT NULL,
  plugin TEXT NOT NULL,
  node TEXT NOT NULL,
  outcome INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  result INTEGER NOT NULL,            -- results.id of the current one, 0 if there is none
  attempt INTEGER NOT NULL,           -- the highest that was opened
  PRIMARY KEY (run, plugin, node)
) WITHOUT ROWID;

-- Every generation of every result; only appended to.
CREATE TABLE results (
  id INTEGER PRIMARY KEY,
  run TEXT NOT NULL,
  plugin TEXT NOT NULL,
  node TEXT NOT NULL,
  generation INTEGER NOT NULL,
  outcome INTEGER NOT NULL,
  size INTEGER NOT NULL,
  crc32c INTEGER NOT NULL,
  sha256 BLOB NOT NULL,
  media_type TEXT NOT NULL,
  file_name TEXT NOT NULL,
  blob TEXT NOT NULL,
  error TEXT NOT NULL,
  uri TEXT NOT NULL,
  node_unproven INTEGER NOT NULL,
  vouched_by TEXT NOT NULL,
  signature BLOB NOT NULL,
  signer_pem TEXT NOT NULL,
  committed_at INTEGER NOT NULL,
  partial_blob TEXT NOT NULL,
  partial_size INTEGER NOT NULL,
  replaced INTEGER NOT NULL           -- 1: a later generation took its place
);
CREATE INDEX results_replaced ON results (run, plugin, node, generation) WHERE replaced = 1;

-- Apart from the results, so that listings do not read them.
CREATE TABLE bodies (result INTEGER PRIMARY KEY, body BLOB NOT NULL);

CREATE TABLE uploads (
  id TEXT NOT NULL PRIMARY KEY,
  run TEXT NOT NULL,
  plugin TEXT NOT NULL,
  node TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  size INTEGER NOT NULL,
  sha256 BLOB NOT NULL,
  media_type TEXT NOT NULL,
  file_name TEXT NOT NULL,
  is_error INTEGER NOT NULL,
  uri TEXT NOT NULL,
  node_unproven INTEGER NOT NULL,
  vouched_by TEXT NOT NULL,
  signature BLOB NOT NULL,
  signer_pem TEXT NOT NULL,
  opened_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX uploads_by_key ON uploads (run, plugin, node);

CREATE TABLE changes (
  sequence INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  run TEXT NOT NULL,
  plugin TEXT NOT NULL,
  node TEXT NOT NULL,
  outcome INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  size INTEGER NOT NULL,
  text TEXT NOT NULL
);

CREATE TABLE revocations (
  subject TEXT NOT NULL PRIMARY KEY,
  reason TEXT NOT NULL,
  revoked_by TEXT NOT NULL,
  at INTEGER NOT NULL
);

CREATE TABLE issued (
  issuer TEXT NOT NULL,
  serial TEXT NOT NULL,
  uri TEXT NOT NULL,
  issued_to TEXT NOT NULL,
  issued_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (issuer, serial)
);
CREATE INDEX issued_by_uri ON issued (uri, issued_at);
CREATE INDEX issued_by_expiry ON issued (expires_at);

CREATE TABLE audit (
  sequence INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  actor TEXT NOT NULL,
  run TEXT NOT NULL,
  plugin TEXT NOT NULL,
  node TEXT NOT NULL,
  text TEXT NOT NULL
);
CREATE INDEX audit_by_run ON audit (run, sequence);
CREATE INDEX audit_by_pair ON audit (run, plugin, node, kind) WHERE plugin <> '';
)sql";

// Live status. Existing runs get no start grace, because their agents send no heartbeats.
constexpr const char* kVersion2 = R"sql(
ALTER TABLE runs ADD COLUMN start_grace INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN lost_after INTEGER NOT NULL DEFAULT 180000000;
ALTER TABLE runs ADD COLUMN fail_fast INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN settled_at INTEGER NOT NULL DEFAULT 0;  -- the last pair's outcome
UPDATE runs SET settled_at = deadline_at WHERE state = 3;
ALTER TABLE runs ADD COLUMN has_status_listener INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN status_hosts TEXT NOT NULL DEFAULT '';  -- one a line
ALTER TABLE runs ADD COLUMN status_port INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN status_open INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN status_fault TEXT NOT NULL DEFAULT '';

-- What was brought for a run's own status listener; gone with the run's authority.
CREATE TABLE status_listeners (
  run TEXT NOT NULL PRIMARY KEY,
  client_ca_pem TEXT NOT NULL,
  certificate_pem TEXT NOT NULL,
  wrapped_key BLOB NOT NULL
);
)sql";

// Expired uploads are looked up every few seconds.
constexpr const char* kVersion3 = "CREATE INDEX uploads_by_expiry ON uploads (expires_at);";

// Enrolled nodes. Labels are lines "key=value", sorted by key.
constexpr const char* kVersion4 = R"sql(
CREATE TABLE join_tokens (
  id TEXT NOT NULL PRIMARY KEY,
  public_key_pem TEXT NOT NULL,
  node TEXT NOT NULL,
  count INTEGER NOT NULL,
  labels TEXT NOT NULL,
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  revoked INTEGER NOT NULL
);
CREATE INDEX join_tokens_by_age ON join_tokens (created_at);
CREATE INDEX join_tokens_by_expiry ON join_tokens (expires_at);

-- The places of a token that are taken: one for each key.
CREATE TABLE joins (
  token TEXT NOT NULL,
  key_sha256 BLOB NOT NULL,
  node TEXT NOT NULL,
  certificate_chain_pem TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (token, key_sha256)
);

CREATE TABLE nodes (
  name TEXT NOT NULL PRIMARY KEY,
  uri TEXT NOT NULL,
  labels TEXT NOT NULL,
  joined_at INTEGER NOT NULL,
  join_token TEXT NOT NULL,
  revoked_at INTEGER NOT NULL,
  revoke_reason TEXT NOT NULL,
  revoked_by TEXT NOT NULL
);
)sql";

// Enrolled relays. Lists have one entry per line.
constexpr const char* kVersion5 = R"sql(
ALTER TABLE join_tokens ADD COLUMN relay INTEGER NOT NULL DEFAULT 0;
ALTER TABLE join_tokens ADD COLUMN parents TEXT NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN relay INTEGER NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN relay_targets TEXT NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN join_targets TEXT NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN parents TEXT NOT NULL DEFAULT '';
)sql";

// Repeats of an audit record are counted in it. Indexes for the filters of a listing.
constexpr const char* kVersion6 = R"sql(
ALTER TABLE audit ADD COLUMN count INTEGER NOT NULL DEFAULT 1;
ALTER TABLE audit ADD COLUMN last_at INTEGER NOT NULL DEFAULT 0;
UPDATE audit SET last_at = at;
CREATE INDEX audit_by_kind ON audit (kind, sequence);
CREATE INDEX audit_by_actor ON audit (actor, sequence);
CREATE INDEX audit_by_time ON audit (at);
)sql";

// The number of audit records by kind, and of the refusals of each actor.
constexpr const char* kVersion7 = R"sql(
CREATE TABLE audit_counts (kind INTEGER NOT NULL PRIMARY KEY, records INTEGER NOT NULL);
INSERT INTO audit_counts SELECT kind, COUNT(*) FROM audit GROUP BY kind;
CREATE TABLE audit_actors (
  actor TEXT NOT NULL PRIMARY KEY,
  since INTEGER NOT NULL,
  records INTEGER NOT NULL,           -- since then
  last INTEGER NOT NULL               -- audit.sequence of the last one
) WITHOUT ROWID;
CREATE INDEX audit_actors_by_age ON audit_actors (since);
CREATE INDEX joins_by_node ON joins (node);
ALTER TABLE runs ADD COLUMN seal_fault TEXT NOT NULL DEFAULT '';
-- The identity of the change feed. A restored copy of the database needs another one, and has it
-- already if RenewFeed was applied to an earlier version.
INSERT OR IGNORE INTO marks VALUES ('feed', lower(hex(randomblob(8))));
)sql";

// Stored results whose bytes a verification found damaged. The archive of a run has no plugin and
// no node.
constexpr const char* kVersion8 = R"sql(
CREATE TABLE damaged (
  run TEXT NOT NULL,
  plugin TEXT NOT NULL,
  node TEXT NOT NULL,
  generation INTEGER NOT NULL,
  damage TEXT NOT NULL,
  PRIMARY KEY (run, plugin, node)
) WITHOUT ROWID;
)sql";

// Retention of finished runs, by the bytes of their results. States from 4 on are final.
constexpr const char* kVersion9 = R"sql(
ALTER TABLE runs ADD COLUMN result_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET result_bytes = sums.bytes
  FROM (SELECT run, sum(size + partial_size) AS bytes FROM results GROUP BY run) AS sums
  WHERE runs.id = sums.run;
CREATE INDEX runs_finished ON runs (ended_at, id, pinned, result_bytes, archive_size)
  WHERE state >= 4;
)sql";

// The identity, the certificate or the job of an audit record.
constexpr const char* kVersion10 = R"sql(
ALTER TABLE audit ADD COLUMN subject TEXT NOT NULL DEFAULT '';
CREATE INDEX audit_by_subject ON audit (subject, sequence) WHERE subject <> '';
)sql";

// True if the owner of the pair named the attempt in the last open.
constexpr const char* kVersion11 =
    "ALTER TABLE uploads ADD COLUMN proven INTEGER NOT NULL DEFAULT 0;";

// The gateway or the relay that vouches for the actor of an audit record.
constexpr const char* kVersion12 =
    "ALTER TABLE audit ADD COLUMN vouched_by TEXT NOT NULL DEFAULT '';";

// Why the node of a damaged result declined to deliver it again.
constexpr const char* kVersion13 =
    "ALTER TABLE damaged ADD COLUMN declined TEXT NOT NULL DEFAULT '';";

constexpr const char* kSteps[] = {kVersion1,  kVersion2,  kVersion3, kVersion4, kVersion5,
                                  kVersion6,  kVersion7,  kVersion8, kVersion9, kVersion10,
                                  kVersion11, kVersion12, kVersion13};

int64_t ReadVersion(Connection& db) {
  bool there = false;
  {
    Rows tables = db.Query("SELECT 1 FROM sqlite_schema WHERE name = 'schema_version'");
    there = tables.Next();
  }
  if (!there) return 0;
  Rows rows = db.Query("SELECT version FROM schema_version");
  return rows.Next() ? rows.Int() : 0;
}

}  // namespace

std::span<const char* const> SchemaSteps() { return kSteps; }

absl::Status Migrate(Connection& db, std::span<const char* const> steps) {
  const auto current = static_cast<int64_t>(steps.size());
  int64_t version = ReadVersion(db);
  if (db.failed()) return db.TakeStatus();
  if (version > current) {
    return errors::StoreTooNew(version, current);
  }
  for (; version < current; ++version) {
    db.Execute("BEGIN IMMEDIATE");
    db.Execute("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)");
    db.Execute(steps[static_cast<size_t>(version)]);
    db.Execute("DELETE FROM schema_version");
    db.Run("INSERT INTO schema_version VALUES (?)", version + 1);
    db.Execute("COMMIT");
    if (!db.failed()) continue;
    absl::Status failure = db.TakeStatus();
    if (db.in_transaction()) db.Execute("ROLLBACK");
    db.TakeStatus().IgnoreError();
    return Annotate(failure, absl::StrCat("migrate to schema version ", version + 1));
  }
  return absl::OkStatus();
}

}  // namespace muster::sqlite
