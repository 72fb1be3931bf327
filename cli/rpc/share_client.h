// Blocking calls about a node's shared files.
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

// A client of the relays of a node, with the identity in its folder. Asks the relays of the node in
// turn, because the agent is attached to one of them. Errors are marked with FromService
// (exit_code.h). Not thread-safe.
class ShareClient {
 public:
  // Reads the folder. Returns NOT_JOINED, or the error of its files.
  static absl::StatusOr<std::unique_ptr<ShareClient>> Open(const std::string& folder);
  ~ShareClient();

  const std::string& node() const;

  // Signs the file at `path` for `target` and uploads it to the relay, unless the relay has it.
  absl::StatusOr<v1::Share> Share(const std::string& path, const std::string& target,
                                  const std::string& id, absl::Duration ttl,
                                  const std::function<void(int64_t, int64_t)>& progress);
  absl::StatusOr<v1::Share> Get(const v1::ShareKey& key);
  absl::StatusOr<std::vector<v1::Share>> List();
  absl::Status Remove(const v1::ShareKey& key);

  // Downloads a file that was shared with this node to `path`. The file appears only when it is
  // complete and matches the signature of its source. A partial download is resumed. Returns
  // ALREADY_EXISTS (FILE_EXISTS) if `path` has other content.
  absl::Status Fetch(const v1::ShareKey& key, const std::string& path,
                     const std::function<void(int64_t, int64_t)>& progress);

 private:
  struct State;
  explicit ShareClient(std::unique_ptr<State> state);

  const std::unique_ptr<State> state_;
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_SHARE_CLIENT_H_
