// The schema of status.db.
#ifndef MUSTER_SERVICES_STATUS_STATUS_SCHEMA_H_
#define MUSTER_SERVICES_STATUS_STATUS_SCHEMA_H_

namespace muster {

// Times are microseconds.
inline constexpr const char* kStatusVersion1 = R"sql(
CREATE TABLE senders (
  uri TEXT NOT NULL,
  node TEXT NOT NULL,
  presence INTEGER NOT NULL,
  presence_since INTEGER NOT NULL,
  last_seen INTEGER NOT NULL,
  instance INTEGER NOT NULL,
  boot INTEGER NOT NULL,
  PRIMARY KEY (uri, node)
) WITHOUT ROWID;
CREATE INDEX senders_by_age ON senders (last_seen);

CREATE TABLE node_events (
  id INTEGER PRIMARY KEY,
  node TEXT NOT NULL,
  at INTEGER NOT NULL,
  presence INTEGER NOT NULL,
  reason INTEGER NOT NULL,
  run TEXT NOT NULL,
  plugin TEXT NOT NULL,
  detail TEXT NOT NULL
);
CREATE INDEX node_events_by_node ON node_events (node, id);
CREATE INDEX node_events_by_age ON node_events (at);

CREATE TABLE contacts (
  run TEXT NOT NULL,
  plugin TEXT NOT NULL,
  node TEXT NOT NULL,
  uri TEXT NOT NULL,
  first INTEGER NOT NULL,
  PRIMARY KEY (run, plugin, node)
) WITHOUT ROWID;

CREATE TABLE progress (
  run TEXT NOT NULL,
  plugin TEXT NOT NULL,
  node TEXT NOT NULL,
  message BLOB NOT NULL,
  PRIMARY KEY (run, plugin, node)
) WITHOUT ROWID;
)sql";

inline constexpr const char* kStatusVersion2 =
    "ALTER TABLE senders ADD COLUMN evidence INTEGER NOT NULL DEFAULT 0;";

// Each step brings a database of the version before it to the next version.
inline constexpr const char* kStatusSchema[] = {kStatusVersion1, kStatusVersion2};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_STATUS_SCHEMA_H_
