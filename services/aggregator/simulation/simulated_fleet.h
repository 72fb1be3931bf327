// The keys of the fleet of all simulations.
#ifndef MUSTER_SERVICES_AGGREGATOR_SIMULATION_SIMULATED_FLEET_H_
#define MUSTER_SERVICES_AGGREGATOR_SIMULATION_SIMULATED_FLEET_H_

#include <map>
#include <string>

#include "muster/v1/results.pb.h"
#include "services/common/identity/authority.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/key.h"
#include "services/common/identity/result_signature.h"

namespace muster::testing {

// Exists once in a process. Not thread-safe. The texts of all certificates of a kind, and all
// signatures, have one length: what is stored takes the same space with any keys.
class SimulatedFleet {
 public:
  static constexpr char kName[] = "f.muster";

  static SimulatedFleet& Get();

  const Certificate& root() const { return root_.certificate(); }
  Intermediate intermediate() const;

  // Signs a result as its node, for some days from the start of FakeClock.
  v1::Signature Sign(const SignedResult& result);

 private:
  SimulatedFleet();

  const FleetRoot root_;
  const PrivateKey key_;
  const Certificate certificate_;              // of the intermediate
  std::map<std::string, std::string> chains_;  // by node
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_AGGREGATOR_SIMULATION_SIMULATED_FLEET_H_
