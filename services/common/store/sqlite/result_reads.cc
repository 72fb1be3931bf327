#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/errors/runs.h"
#include "services/common/store/sqlite/results.h"

namespace muster::sqlite {
namespace {

#define MUSTER_RESULT_COLUMNS                                                                  \
  "r.size, r.crc32c, r.sha256, r.media_type, r.file_name, r.blob, r.error, r.uri, "            \
  "r.node_unproven, r.vouched_by, r.signature, r.signer_pem, r.committed_at, r.partial_blob, " \
  "r.partial_size"

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
  delivery.signer_pem = rows.Text();
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
  auto result = ReadHead(db, key);
  if (!result || !result->blob.empty() || result->size == 0) return result;
  Rows rows = db.Query(
      "SELECT body FROM bodies WHERE result ="
      " (SELECT result FROM pairs WHERE run = ? AND plugin = ? AND node = ?)",
      key.run, key.plugin, key.node);
  if (rows.Next()) result->body = rows.Text();
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

// Page tokens are "<plugin>/<node>" of the last pair of the previous page; names contain no slash.
absl::StatusOr<Page<ResultRecord>> ReadResults(Connection& db, const ResultFilter& filter,
                                               std::string_view page_token, int limit) {
  std::string_view plugin = filter.plugin;
  std::string_view node;
  if (!page_token.empty()) {
    const size_t slash = page_token.find('/');
    if (slash == std::string_view::npos) return errors::InvalidPageToken();
    plugin = page_token.substr(0, slash);
    node = page_token.substr(slash + 1);
  }
  limit = std::clamp(limit, 1, 10'000);
  Page<ResultRecord> page;
  Rows rows =
      db.Query("SELECT p.plugin, p.node, p.outcome, p.generation, " MUSTER_RESULT_COLUMNS
               " FROM pairs AS p LEFT JOIN results AS r ON r.id = p.result"
               " WHERE p.run = ? AND (p.plugin, p.node) > (?, ?) AND p.plugin <= ?"
               " AND (? = '' OR p.node = ?) AND (? OR p.outcome <> 0)"
               " AND EXISTS (SELECT 1 FROM runs WHERE id = p.run)"
               " ORDER BY p.plugin, p.node LIMIT ?",
               filter.run, plugin, node,
               filter.plugin.empty() ? std::string_view("\x7f") : std::string_view(filter.plugin),
               filter.node, filter.node, filter.with_pending, limit);
  page.items = ParseAll(rows, filter.run);
  if (static_cast<int>(page.items.size()) == limit) {
    page.next = absl::StrCat(page.items.back().key.plugin, "/", page.items.back().key.node);
  }
  return page;
}

}  // namespace muster::sqlite
