// Ids and salts that follow a seed.
#ifndef MUSTER_SERVICES_AGGREGATOR_SIMULATION_SEEDED_RANDOM_H_
#define MUSTER_SERVICES_AGGREGATOR_SIMULATION_SEEDED_RANDOM_H_

#include <cstdint>

namespace muster::testing {

// Sets the seed of everything that getrandom and std::random_device return in this program, which
// links this unit.
void SeedRandomIds(uint64_t seed);

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_AGGREGATOR_SIMULATION_SEEDED_RANDOM_H_
