// A node's shared files as its relay has them. Plain calls that block.
#ifndef MUSTER_CLI_RPC_SHARE_CLIENT_H_
#define MUSTER_CLI_RPC_SHARE_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/shares.pb.h"

namespace muster::cli {

// With the identity of the node whose folder it is. Asks the node's relays in turn, as the agent
// attaches to one of them. Errors are marked with FromService (exit_code.h). Not thread-safe.
class ShareClient {
 public:
  // Reads the folder. NOT_JOINED and what is wrong with its files.
  static absl::StatusOr<std::unique_ptr<ShareClient>> Open(const std::string& folder);
  ~ShareClient();

  const std::string& node() const;

  // Signs the file at `path` for `target` and leaves it at the relay, unless it is there already.
  absl::StatusOr<v1::Share> Share(const std::string& path, const std::string& target,
                                  const std::string& id, absl::Duration ttl,
                                  const std::function<void(int64_t, int64_t)>& progress);
  absl::StatusOr<v1::Share> Get(const v1::ShareKey& key);
  absl::StatusOr<std::vector<v1::Share>> List();
  absl::Status Remove(const v1::ShareKey& key);

  // What was shared with this node goes to `path`, once all of it is there and is what its source
  // signed. Goes on where an earlier try stopped.
  absl::Status Fetch(const v1::ShareKey& key, const std::string& path,
                     const std::function<void(int64_t, int64_t)>& progress);

 private:
  struct State;
  explicit ShareClient(std::unique_ptr<State> state);

  const std::unique_ptr<State> state_;
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_SHARE_CLIENT_H_
