// Gives the contract tests access to a driver, and builds records for them.
#ifndef MUSTER_SERVICES_COMMON_STORE_CONTRACT_STORE_HARNESS_H_
#define MUSTER_SERVICES_COMMON_STORE_CONTRACT_STORE_HARNESS_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "services/common/store/change_feed.h"
#include "services/common/store/state_store.h"

namespace muster {

// An empty place for state, which outlives the stores that open it.
class StoreHarness {
 public:
  virtual ~StoreHarness() = default;
  // Closes the open store, if any, and opens it again.
  virtual absl::Status Open() = 0;
  virtual StateStore& state() = 0;
  virtual ChangeFeed& feed() = 0;  // of the same store; keeps at least 100 changes
};

using StoreHarnessFactory = std::function<std::unique_ptr<StoreHarness>()>;

inline constexpr char kRun[] = "00112233445566aa";
inline constexpr int64_t kCreated = 1'000'000;
inline constexpr int64_t kDeadline = 100'000'000;
inline constexpr int64_t kGrace = 20'000'000;

inline CreateRun MakeRun(std::string_view id, std::vector<PlannedPair> pairs) {
  CreateRun command;
  command.run.id = id;
  command.run.request_id = absl::StrCat("request-", command.run.id);
  command.run.title = "a round";
  command.run.created_by = "spiffe://f.muster/user/ann";
  command.run.created_at = kCreated;
  command.run.deadline_at = kDeadline;
  command.run.seal_grace = kGrace;
  command.run.start_grace = 3'000'000;
  command.run.lost_after = 4'000'000;
  command.run.listener.hosts = {"muster.example", "192.0.2.1"};
  command.run.plugins = {
      {.name = "facts", .has_image = true, .result_format = "raw", .definition_yaml = "a: 1\n"},
      {.name = "e2e", .once = true, .result_format = "junit"}};
  command.pairs = std::move(pairs);
  command.authority = {.fleet_signed_pem = "fleet pem",
                       .self_signed_pem = "self pem",
                       .wrapped_key = std::string("\0key", 4),
                       .ends_at = 999};
  return command;
}

inline ResultKey KeyOf(std::string_view node, std::string_view plugin = "facts") {
  return {.run = kRun, .plugin = std::string(plugin), .node = std::string(node)};
}

inline std::string Digest(char c) { return std::string(32, c); }

// Returns a small genuine result; `content` determines size, checksum, digest and body.
inline CommitResult Genuine(const ResultKey& key, std::string_view content,
                            int64_t at = 2'000'000) {
  CommitResult command;
  ResultRecord& result = command.result;
  result.key = key;
  result.outcome = Outcome::kGenuine;
  result.size = static_cast<int64_t>(content.size());
  result.crc32c = static_cast<uint32_t>(std::hash<std::string_view>()(content));
  result.sha256 = Digest(content.empty() ? '0' : content.back());
  result.body = content;
  result.media_type = "application/json";
  result.file_name = "facts.json";
  result.delivery.uri = absl::StrCat("spiffe://f.muster/node/", key.node);
  result.committed_at = at;
  return command;
}

inline CommitResult Failed(const ResultKey& key, std::string_view error, int64_t at = 2'000'000) {
  CommitResult command = Genuine(key, "", at);
  command.result.outcome = Outcome::kError;
  command.result.error = error;
  command.result.sha256.clear();
  return command;
}

inline OpenUpload Opening(const ResultKey& key, std::string_view id, int64_t attempt = 1,
                          int64_t at = 2'000'000) {
  OpenUpload command;
  command.upload.id = id;
  command.upload.key = key;
  command.upload.attempt = attempt;
  command.upload.media_type = "application/gzip";
  command.upload.file_name = "r.tar.gz";
  command.upload.delivery.uri = "spiffe://f.muster/node/n1";
  command.upload.opened_at = at;
  command.upload.expires_at = at + 1000;
  command.at = at;
  return command;
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_STORE_CONTRACT_STORE_HARNESS_H_
