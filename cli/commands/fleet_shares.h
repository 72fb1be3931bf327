// Shared files of all relays, for an operator.
#ifndef MUSTER_CLI_COMMANDS_FLEET_SHARES_H_
#define MUSTER_CLI_COMMANDS_FLEET_SHARES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/shares.pb.h"
#include "services/common/identity/context.h"

namespace muster::cli {

// A client of the root relay, which forwards requests to the other relays. The calls block and have
// a deadline. Errors are marked with FromService (exit_code.h). Not thread-safe.
class FleetShares {
 public:
  explicit FleetShares(const OperatorContext& context);
  ~FleetShares();

  // Returns the names of the relays that are attached, or were attached in the last week.
  absl::StatusOr<std::vector<std::string>> ListRelays();

  struct RelayShares {
    v1::ShareUsage usage;
    std::vector<v1::Share> shares;
  };
  // Lists the shared files at `relay`, or at the root relay if it is empty.
  absl::StatusOr<RelayShares> List(const std::string& relay);

  // If `relay` is empty, the root relay searches for the file.
  absl::StatusOr<v1::Share> Get(const v1::ShareKey& key, const std::string& relay);
  absl::Status Remove(const v1::ShareKey& key, const std::string& relay);

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_FLEET_SHARES_H_
