#include "services/simulation/world_seeds.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "services/aggregator/simulation/seeded_random.h"

namespace muster::testing {
namespace {

// Returns the first and the last seed.
std::pair<uint64_t, uint64_t> WantedSeeds(uint64_t ordinary) {
  std::pair<uint64_t, uint64_t> seeds = {1, ordinary};
  const char* wanted = std::getenv("WORLD_SEEDS");
  if (wanted == nullptr) return seeds;
  const std::pair<std::string, std::string> range = absl::StrSplit(wanted, '-');
  EXPECT_TRUE(absl::SimpleAtoi(range.first, &seeds.first) &&
              absl::SimpleAtoi(range.second, &seeds.second))
      << "WORLD_SEEDS must be FIRST-LAST";
  return seeds;
}

}  // namespace

void RunSeeds(const Seeds& seeds, const RunOneSeed& run) {
  const auto [first, last] = WantedSeeds(seeds.seeds);
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
