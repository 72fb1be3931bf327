// The seeds that a developer or the nightly command wants from a simulation.
#ifndef MUSTER_SERVICES_AGGREGATOR_SIMULATION_WANTED_SEEDS_H_
#define MUSTER_SERVICES_AGGREGATOR_SIMULATION_WANTED_SEEDS_H_

#include <cstdint>
#include <utility>

namespace muster::testing {

// Returns the first and the last seed: those of the environment variable, FIRST-LAST, or 1 and
// `ordinary` without it. Another text fails the test.
std::pair<uint64_t, uint64_t> WantedSeeds(const char* variable, uint64_t ordinary);

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_AGGREGATOR_SIMULATION_WANTED_SEEDS_H_
