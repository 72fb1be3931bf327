#include <algorithm>
#include <string>
#include <utility>

#include "services/common/base/status_macros.h"
#include "services/common/store/sqlite/damage.h"
#include "services/common/store/sqlite/page_token.h"
#include "services/common/store/sqlite/results.h"

namespace muster::sqlite {
namespace {

constexpr int kMaxPage = 10'000;

#define MUSTER_RESULT_COLUMNS                                                       \
  "r.size, r.crc32c, r.sha256, r.media_type, r.file_name, r.blob, r.error, r.uri, " \
  "r.node_unproven, r.vouched_by, r.signature, r.committed_at, r.partial_blob, r.partial_size"

// Reads the columns after key, outcome and generation.
void ParseResult(Rows& rows, ResultRecord& result) {
  result.size = rows.Int();
  result.crc32c = static_cast<uint32_t>(rows.Int());
  result.sha256 = rows.Text();
  result.media_type = rows.Text();
  result.file_name = rows.Text();
  result.blob = rows.Text();
  result.error = rows.Text();
  result.delivery = ParseDelivery(rows);
  result.committed_at = rows.Int();
  result.partial_blob = rows.Text();
  result.partial_size = rows.Int();
}

ResultRecord ParseWithKey(Rows& rows, std::string_view run) {
  ResultRecord result;
  result.key.run = run;
  result.key.plugin = rows.Text();
  result.key.node = rows.Text();
  result.outcome = rows.Enum<Outcome>();
  result.generation = rows.Int();
  ParseResult(rows, result);
  return result;
}

std::vector<ResultRecord> ParseAll(Rows& rows, std::string_view run) {
  std::vector<ResultRecord> results;
  while (rows.Next()) results.push_back(ParseWithKey(rows, run));
  return results;
}

}  // namespace

Delivery ParseDelivery(Rows& rows) {
  Delivery delivery;
  delivery.uri = rows.Text();
  delivery.node_unproven = rows.Bool();
  delivery.vouched_by = rows.Text();
  delivery.signature = rows.Text();
  return delivery;
}

std::optional<PairHead> FindPair(Connection& db, const ResultKey& key) {
  {
    Rows rows = db.Query("SELECT 1 FROM runs WHERE id = ?", key.run);
    if (!rows.Next()) return std::nullopt;
  }
  return FindPairOfRun(db, key);
}

std::optional<PairHead> FindPairOfRun(Connection& db, const ResultKey& key) {
  Rows rows = db.Query(
      "SELECT outcome, generation, result, attempt FROM pairs"
      " WHERE run = ? AND plugin = ? AND node = ?",
      key.run, key.plugin, key.node);
  if (!rows.Next()) return std::nullopt;
  PairHead head;
  head.outcome = rows.Enum<Outcome>();
  head.generation = rows.Int();
  head.result = rows.Int();
  head.attempt = rows.Int();
  return head;
}

bool HasPairOfNode(Connection& db, std::string_view run, std::string_view node) {
  // One look-up for each plugin, of which a run has few.
  Rows rows = db.Query(
      "SELECT 1 FROM run_plugins AS plugin CROSS JOIN pairs AS pair ON pair.run = plugin.run"
      " AND pair.plugin = plugin.name AND pair.node = ? WHERE plugin.run = ? LIMIT 1",
      node, run);
  return rows.Next();
}

std::optional<ResultRecord> ReadHead(Connection& db, const ResultKey& key) {
  const auto pair = FindPair(db, key);
  if (!pair) return std::nullopt;
  return ReadHead(db, key, *pair);
}

ResultRecord ReadHead(Connection& db, const ResultKey& key, const PairHead& pair) {
  ResultRecord result;
  result.key = key;
  result.outcome = pair.outcome;
  result.generation = pair.generation;
  if (pair.result == 0) return result;
  Rows rows =
      db.Query("SELECT " MUSTER_RESULT_COLUMNS " FROM results AS r WHERE r.id = ?", pair.result);
  if (rows.Next()) ParseResult(rows, result);
  return result;
}

std::optional<ResultRecord> ReadResult(Connection& db, const ResultKey& key) {
  const auto pair = FindPair(db, key);
  if (!pair) return std::nullopt;
  ResultRecord result = ReadHead(db, key, *pair);
  result.damage = ReadDamage(db, key);
  if (!result.damage.empty()) result.redelivery = ReadRedelivery(db, key);
  {
    Rows rows = db.Query("SELECT signer_pem FROM results WHERE id = ?", pair->result);
    if (rows.Next()) result.delivery.signer_pem = rows.Text();
  }
  if (!result.blob.empty() || result.size == 0) return result;
  Rows rows = db.Query("SELECT body FROM bodies WHERE result = ?", pair->result);
  if (rows.Next()) result.body = rows.Text();
  return result;
}

std::vector<ResultRecord> ReadHistory(Connection& db, const ResultKey& key) {
  Rows rows = db.Query("SELECT r.plugin, r.node, r.outcome, r.generation, " MUSTER_RESULT_COLUMNS
                       " FROM results AS r WHERE r.run = ? AND r.plugin = ? AND r.node = ?"
                       " AND r.replaced = 1 AND EXISTS (SELECT 1 FROM runs WHERE id = r.run)"
                       " ORDER BY r.generation",
                       key.run, key.plugin, key.node);
  return ParseAll(rows, key.run);
}

#define MUSTER_RESULT_LISTING(from)                                                               \
  "SELECT p.plugin, p.node, p.outcome, p.generation, " MUSTER_RESULT_COLUMNS                      \
  ", COALESCE((SELECT damage FROM damaged AS d WHERE d.run = p.run"                               \
  " AND d.plugin = p.plugin AND d.node = p.node AND d.generation = p.generation), '') FROM " from \
  " AND (p.plugin, p.node) > (?, ?) AND p.plugin <= ? AND (? OR p.outcome <> 0)"                  \
  " AND EXISTS (SELECT 1 FROM runs WHERE id = p.run) ORDER BY p.plugin, p.node LIMIT ?"

const char* const kResultsOfRun =
    MUSTER_RESULT_LISTING("pairs AS p LEFT JOIN results AS r ON r.id = p.result WHERE p.run = ?");

// One lookup for each plugin, because the key of a pair is (run, plugin, node).
const char* const kResultsOfNode = MUSTER_RESULT_LISTING(
    "run_plugins AS plugin CROSS JOIN pairs AS p ON p.run = plugin.run AND p.plugin = plugin.name"
    " AND p.node = ? LEFT JOIN results AS r ON r.id = p.result WHERE plugin.run = ?");

absl::StatusOr<Page<ResultRecord>> ReadResults(Connection& db, const ResultFilter& filter,
                                               std::string_view page_token, int limit) {
  PageToken after = {filter.plugin, ""};  // plugin and node
  if (!page_token.empty()) {
    ASSIGN_OR_RETURN(after, ParsePageToken(page_token));
  }
  limit = std::clamp(limit, 1, kMaxPage);
  const std::string_view last_plugin =
      filter.plugin.empty() ? std::string_view("\x7f") : std::string_view(filter.plugin);
  Page<ResultRecord> page;
  Rows rows = filter.node.empty() ? db.Query(kResultsOfRun, filter.run, after.first, after.second,
                                             last_plugin, filter.with_pending, limit)
                                  : db.Query(kResultsOfNode, filter.node, filter.run, after.first,
                                             after.second, last_plugin, filter.with_pending, limit);
  while (rows.Next()) {
    page.items.push_back(ParseWithKey(rows, filter.run));
    ResultRecord& result = page.items.back();
    result.damage = rows.Text();
    if (!result.damage.empty()) result.redelivery = ReadRedelivery(db, result.key);
  }
  if (static_cast<int>(page.items.size()) == limit) {
    page.next = MakePageToken(page.items.back().key.plugin, page.items.back().key.node);
  }
  return page;
}

absl::StatusOr<Page<PairRecord>> ReadPairs(Connection& db, std::string_view run,
                                           std::string_view page_token, int limit) {
  PageToken after;  // plugin and node
  if (!page_token.empty()) {
    ASSIGN_OR_RETURN(after, ParsePageToken(page_token));
  }
  limit = std::clamp(limit, 1, kMaxPage);
  Page<PairRecord> page;
  page.items.reserve(limit);
  // A run that is being deleted has no row any more; its pairs go step by step.
  Rows rows = db.Query(
      "SELECT p.plugin, p.node, p.outcome, p.generation, r.size, r.error, r.committed_at"
      " FROM pairs AS p LEFT JOIN results AS r ON r.id = p.result"
      " WHERE p.run = ? AND (p.plugin, p.node) > (?, ?)"
      " AND EXISTS (SELECT 1 FROM runs WHERE id = ?)"
      " ORDER BY p.plugin, p.node LIMIT ?",
      run, after.first, after.second, run, limit);
  while (rows.Next()) {
    PairRecord& pair = page.items.emplace_back();
    pair.plugin = rows.Text();
    pair.node = rows.Text();
    pair.outcome = rows.Enum<Outcome>();
    pair.generation = rows.Int();
    pair.size = rows.Int();
    pair.error = rows.Text();
    pair.committed_at = rows.Int();
  }
  if (static_cast<int>(page.items.size()) == limit) {
    page.next = MakePageToken(page.items.back().plugin, page.items.back().node);
  }
  return page;
}

}  // namespace muster::sqlite
