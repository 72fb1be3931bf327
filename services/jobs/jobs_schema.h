// The schema of jobs.db.
#ifndef MUSTER_SERVICES_JOBS_JOBS_SCHEMA_H_
#define MUSTER_SERVICES_JOBS_JOBS_SCHEMA_H_

namespace muster {

// Times are microseconds.
inline constexpr const char* kJobsVersion1 = R"sql(
CREATE TABLE documents (
  kind INTEGER NOT NULL,     -- DocumentKind
  name TEXT NOT NULL,
  rank TEXT NOT NULL,        -- VersionSortKey
  version TEXT NOT NULL,
  document TEXT NOT NULL,
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (kind, name, rank)
) WITHOUT ROWID;

CREATE TABLE deployments (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  deployment TEXT NOT NULL UNIQUE,
  job TEXT NOT NULL UNIQUE,
  created_by TEXT NOT NULL,
  ended INTEGER NOT NULL,
  message BLOB NOT NULL,         -- Deployment, without nodes
  request BLOB NOT NULL,         -- CreateDeploymentRequest; empty once it has ended
  request_sha256 BLOB NOT NULL,
  position INTEGER NOT NULL      -- of WatchJob: the records before it are stored
);
CREATE INDEX deployments_open ON deployments (id) WHERE ended = 0;
CREATE INDEX deployments_ended ON deployments (id) WHERE ended = 1;

CREATE TABLE deployment_nodes (
  deployment INTEGER NOT NULL,   -- deployments.id
  node TEXT NOT NULL,
  succeeded INTEGER NOT NULL,
  message BLOB NOT NULL,         -- DeploymentNode
  PRIMARY KEY (deployment, node)
) WITHOUT ROWID;
)sql";

// A deployment of the first version may have been submitted.
inline constexpr const char* kJobsVersion2 = R"sql(
-- The root relay may have its command.
ALTER TABLE deployments ADD COLUMN attempted INTEGER NOT NULL DEFAULT 1;
-- An operator cancelled it.
ALTER TABLE deployments ADD COLUMN cancelled INTEGER NOT NULL DEFAULT 0;
CREATE INDEX deployments_of_creator ON deployments (created_by, id) WHERE ended = 1;
)sql";

// From this version on, a request is kept after the end: it is signed again for a retry.
inline constexpr const char* kJobsVersion3 = R"sql(
-- The deployment that this one tries again, and the one that it destroys; empty: none.
ALTER TABLE deployments ADD COLUMN retry_of TEXT NOT NULL DEFAULT '';
ALTER TABLE deployments ADD COLUMN destroys TEXT NOT NULL DEFAULT '';
CREATE INDEX deployments_retry_of ON deployments (retry_of, id);
CREATE INDEX deployments_destroys ON deployments (destroys, id);
)sql";

inline constexpr const char* kJobsVersion4 = R"sql(
-- The stored contents of files. Their bytes are blobs (content_store.h).
CREATE TABLE contents (
  sha256 BLOB PRIMARY KEY,
  size INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  kept_until INTEGER NOT NULL    -- longer while a deployment names it
) WITHOUT ROWID;

-- Contents that are not complete. Their bytes are the staged blob `upload`.
CREATE TABLE content_uploads (
  upload TEXT PRIMARY KEY,
  sha256 BLOB NOT NULL,
  size INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  kept_until INTEGER NOT NULL
) WITHOUT ROWID;

-- The contents that the command of a deployment names.
CREATE TABLE deployment_contents (
  deployment INTEGER NOT NULL,   -- deployments.id
  sha256 BLOB NOT NULL,
  PRIMARY KEY (deployment, sha256)
) WITHOUT ROWID;
CREATE INDEX deployment_contents_of ON deployment_contents (sha256);
)sql";

inline constexpr const char* kJobsVersion5 = R"sql(
-- The last report of the template type "conformance" of each node.
CREATE TABLE conformance_reports (
  node TEXT NOT NULL PRIMARY KEY,
  deployment TEXT NOT NULL,
  type TEXT NOT NULL,            -- NAME@VERSION
  received_at INTEGER NOT NULL,
  report TEXT NOT NULL           -- JSON
) WITHOUT ROWID;
CREATE TABLE conformance_baseline (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  message BLOB NOT NULL          -- ConformanceBaseline
);
)sql";

// The values of secrets are encrypted (identity/key_wrap.h).
inline constexpr const char* kJobsVersion6 = R"sql(
CREATE TABLE secrets (
  name TEXT NOT NULL PRIMARY KEY,
  latest INTEGER NOT NULL,       -- the newest version; kept after a deletion
  deleted_at INTEGER NOT NULL    -- 0: it exists
) WITHOUT ROWID;

CREATE TABLE secret_versions (
  name TEXT NOT NULL,
  version INTEGER NOT NULL,
  value BLOB NOT NULL,
  size INTEGER NOT NULL,         -- of the value
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (name, version)
) WITHOUT ROWID;

CREATE TABLE secret_reads (
  deployment INTEGER NOT NULL,   -- deployments.id
  node TEXT NOT NULL,
  key BLOB NOT NULL,             -- of the request
  read_at INTEGER NOT NULL,
  PRIMARY KEY (deployment, node, key)
) WITHOUT ROWID;
)sql";

// The archives of versions are encrypted blobs (workspace_store.h).
inline constexpr const char* kJobsVersion7 = R"sql(
CREATE TABLE workspaces (
  name TEXT NOT NULL PRIMARY KEY,
  data_key BLOB NOT NULL,        -- wrapped (identity/key_wrap.h); empty before the first upload
  latest INTEGER NOT NULL,       -- the newest version; 0: none
  state INTEGER NOT NULL,        -- WorkspaceState
  deployment TEXT NOT NULL,      -- that has it; empty: none, as in the next three
  job TEXT NOT NULL,
  node TEXT NOT NULL,
  since INTEGER NOT NULL,
  problem TEXT NOT NULL          -- why it is suspect
) WITHOUT ROWID;
CREATE INDEX workspaces_of_deployment ON workspaces (deployment);

CREATE TABLE workspace_versions (
  name TEXT NOT NULL,
  version INTEGER NOT NULL,
  upload TEXT NOT NULL,          -- its blob; a restored version has that of the original one
  sha256 BLOB NOT NULL,          -- of the archive, as the next
  size INTEGER NOT NULL,
  deployment TEXT NOT NULL,
  job TEXT NOT NULL,
  node TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  omitted INTEGER NOT NULL,
  restored_from INTEGER NOT NULL,  -- 0: it was saved by a node
  restored_by TEXT NOT NULL,
  PRIMARY KEY (name, version)
) WITHOUT ROWID;

-- The version that the node of the deployment is sending: the staged blob `upload`.
CREATE TABLE workspace_uploads (
  name TEXT NOT NULL PRIMARY KEY,
  upload TEXT NOT NULL,
  job TEXT NOT NULL,
  sha256 BLOB NOT NULL,
  size INTEGER NOT NULL
) WITHOUT ROWID;
)sql";

inline constexpr const char* kJobsVersion8 = R"sql(
-- After the end, the time until which the outcome of a node that was given up may arrive; 0: every
-- node has its own outcome; -1: late records are being stored.
ALTER TABLE deployments ADD COLUMN unsettled_until INTEGER NOT NULL DEFAULT 0;
CREATE INDEX deployments_unsettled ON deployments (id) WHERE unsettled_until != 0;
)sql";

inline constexpr const char* kJobsVersion9 = R"sql(
-- Records of changes that the audit log of the aggregator lacks.
CREATE TABLE audit_outbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  message BLOB NOT NULL          -- RecordServiceChangeRequest
);
)sql";

inline constexpr const char* kJobsVersion10 = R"sql(
-- The number of the documents of a creator without reading the documents.
CREATE INDEX documents_of_creator ON documents (kind, created_by);
-- The contents that are not kept any more.
CREATE INDEX contents_kept_until ON contents (kept_until);

-- The number and the bytes of the contents and uploads of each creator: a sum over all of them would
-- take long for each upload.
CREATE TABLE content_usage (
  created_by TEXT NOT NULL PRIMARY KEY,
  count INTEGER NOT NULL,
  bytes INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO content_usage SELECT created_by, count(*), sum(size) FROM
  (SELECT size, created_by FROM contents UNION ALL SELECT size, created_by FROM content_uploads)
  GROUP BY created_by;
CREATE TRIGGER content_added AFTER INSERT ON contents BEGIN
  INSERT INTO content_usage VALUES (new.created_by, 1, new.size)
    ON CONFLICT (created_by) DO UPDATE SET count = count + 1, bytes = bytes + new.size;
END;
CREATE TRIGGER content_removed AFTER DELETE ON contents BEGIN
  UPDATE content_usage SET count = count - 1, bytes = bytes - old.size
    WHERE created_by = old.created_by;
  DELETE FROM content_usage WHERE created_by = old.created_by AND count = 0;
END;
CREATE TRIGGER content_upload_added AFTER INSERT ON content_uploads BEGIN
  INSERT INTO content_usage VALUES (new.created_by, 1, new.size)
    ON CONFLICT (created_by) DO UPDATE SET count = count + 1, bytes = bytes + new.size;
END;
CREATE TRIGGER content_upload_removed AFTER DELETE ON content_uploads BEGIN
  UPDATE content_usage SET count = count - 1, bytes = bytes - old.size
    WHERE created_by = old.created_by;
  DELETE FROM content_usage WHERE created_by = old.created_by AND count = 0;
END;
)sql";

inline constexpr const char* kJobsVersion11 = R"sql(
-- The deleted workspaces.
CREATE TABLE deleted_workspaces (
  name TEXT NOT NULL,
  last_deployment INTEGER NOT NULL,  -- deployments.id: later ones have another workspace of the name
  deleted_by TEXT NOT NULL,
  deleted_at INTEGER NOT NULL,
  PRIMARY KEY (name, last_deployment)
) WITHOUT ROWID;
CREATE INDEX deleted_workspaces_last ON deleted_workspaces (last_deployment);
)sql";

inline constexpr const char* kJobsVersion12 = R"sql(
-- After the end, above 0: the outcome of a node that was given up may arrive; 0: every node has its own
-- outcome; -1: late records are being stored.
ALTER TABLE deployments RENAME COLUMN unsettled_until TO unsettled;
-- The files of built templates.
CREATE TABLE template_files (
  name TEXT NOT NULL,
  version TEXT NOT NULL,
  build TEXT NOT NULL,       -- deployments.deployment, which may be removed
  files BLOB NOT NULL,       -- Template with `files` alone
  PRIMARY KEY (name, version)
) WITHOUT ROWID;
)sql";

// Each step brings a database of the version before it to the next version.
inline constexpr const char* kJobsSchema[] = {
    kJobsVersion1, kJobsVersion2, kJobsVersion3, kJobsVersion4,  kJobsVersion5,  kJobsVersion6,
    kJobsVersion7, kJobsVersion8, kJobsVersion9, kJobsVersion10, kJobsVersion11, kJobsVersion12};

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_JOBS_SCHEMA_H_
