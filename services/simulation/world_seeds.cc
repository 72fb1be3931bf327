#include "services/simulation/world_seeds.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <vector>

#include "services/aggregator/simulation/seeded_random.h"
#include "services/aggregator/simulation/wanted_seeds.h"

namespace muster::testing {

namespace {

std::vector<uint64_t> SeedsOfPart(const Seeds& seeds) {
  const auto [first, last] = WantedSeeds("WORLD_SEEDS", seeds.seeds);
  std::vector<uint64_t> part;
  for (uint64_t seed = first + seeds.part; seed <= last; seed += kSeedParts) part.push_back(seed);
  if (std::getenv("WORLD_SEEDS") == nullptr) {
    for (size_t i = seeds.part; i < seeds.found.size(); i += kSeedParts) {
      part.push_back(seeds.found[i]);
    }
  }
  return part;
}

}  // namespace

void RunSeeds(const Seeds& seeds, const RunOneSeed& run) {
  int64_t crashes = 0;
  int failed = 0;
  for (const uint64_t seed : SeedsOfPart(seeds)) {
    if (failed >= 5) break;
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
