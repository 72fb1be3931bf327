// The seeds of the tests of simulated worlds.
#ifndef MUSTER_SERVICES_SIMULATION_WORLD_SEEDS_H_
#define MUSTER_SERVICES_SIMULATION_WORLD_SEEDS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace muster::testing {

// The parts of the seeds, for the shards of a test.
inline constexpr uint64_t kSeedParts = 4;

// The outcome of one seed.
struct WorldRun {
  absl::Status outcome;
  int crashes = 0;
  std::string log;
};
using RunOneSeed = std::function<WorldRun(uint64_t seed)>;

struct Seeds {
  std::string name;    // of the test
  uint64_t seeds = 0;  // of an ordinary run: 1 to this one
  uint64_t part = 0;
  // Seeds that found a defect: an ordinary run repeats them.
  std::vector<uint64_t> found = {};
};

// Runs a part of the seeds and of the found ones, or of those that WORLD_SEEDS names
// ("FIRST-LAST"), until five have failed. Prints the number of crashes, and with WORLD_LOG the
// steps.
void RunSeeds(const Seeds& seeds, const RunOneSeed& run);

// Returns the steps of a seed that passes.
std::string LogOf(uint64_t seed, const RunOneSeed& run);

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_SIMULATION_WORLD_SEEDS_H_
