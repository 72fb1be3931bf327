// Shared files for an operator: what lies at which relay.
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

// Asks the relay at the centre, which asks the others. Plain calls that block and have a deadline.
// Errors are marked with FromService (exit_code.h). Not thread-safe.
class FleetShares {
 public:
  explicit FleetShares(const OperatorContext& context);
  ~FleetShares();

  // The relays that are attached, or were within the last week, by name.
  absl::StatusOr<std::vector<std::string>> Relays();

  struct AtRelay {
    v1::ShareUsage usage;
    std::vector<v1::Share> shares;
  };
  // `relay` empty: the one at the centre.
  absl::StatusOr<AtRelay> List(const std::string& relay);

  // `relay` empty: wherever the relay at the centre finds it.
  absl::StatusOr<v1::Share> Get(const v1::ShareKey& key, const std::string& relay);
  absl::Status Remove(const v1::ShareKey& key, const std::string& relay);

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_FLEET_SHARES_H_
