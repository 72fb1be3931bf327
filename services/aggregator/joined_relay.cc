#include "services/aggregator/joined_relay.h"

#include <string>
#include <variant>

#include "services/common/errors/identity.h"
#include "services/common/identity/identity.h"

namespace muster {

absl::Status RefuseJoinedRelay(const Call& call) {
  const Identity& caller = call.caller().identity;
  const auto* service = std::get_if<ServiceIdentity>(&caller.name);
  const bool joined =
      service != nullptr && service->role == ServiceRole::kRelay && service->name != kRootRelay;
  if (!joined) return absl::OkStatus();
  return errors::NotYours(ToUri(caller).value_or(""), call.method(), "the fleet");
}

}  // namespace muster
