#include "services/simulation/world_seeds.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "services/aggregator/simulation/seeded_random.h"
#include "services/aggregator/simulation/wanted_seeds.h"

namespace muster::testing {

void RunSeeds(const Seeds& seeds, const RunOneSeed& run) {
  const auto [first, last] = WantedSeeds("WORLD_SEEDS", seeds.seeds);
  int64_t crashes = 0;
  int failed = 0;
  for (uint64_t seed = first + seeds.part; seed <= last && failed < 5; seed += kSeedParts) {
    SeedRandomIds(seed);
    const WorldRun outcome = run(seed);
    crashes += outcome.crashes;
    if (!outcome.outcome.ok()) ++failed;
    EXPECT_TRUE(outcome.outcome.ok())
        << "seed " << seed << ": " << outcome.outcome << "\nsteps:\n"
        << outcome.log << "repeat with: bazel test //services/simulation:" << seeds.name
        << " --test_env=WORLD_SEEDS=" << seed << "-" << seed;
    if (std::getenv("WORLD_LOG") != nullptr) {
      std::cout << "seed " << seed << "\n" << outcome.log;
    }
  }
  std::cout << crashes << " crashes\n";
}

std::string LogOf(uint64_t seed, const RunOneSeed& run) {
  SeedRandomIds(seed);
  const WorldRun outcome = run(seed);
  EXPECT_TRUE(outcome.outcome.ok()) << "seed " << seed << ": " << outcome.outcome;
  return outcome.log;
}

}  // namespace muster::testing
