// Crashes and failures of the disk under the aggregator's stores, over many seeds.
//
//   bazel test //services/aggregator/simulation:crash_simulation_test
//     --test_env=CRASH_SEEDS=FIRST-LAST    # these seeds instead of the ordinary ones; one: N-N
//     --test_env=CRASH_LOG=1               # prints the steps of each
#include "services/aggregator/simulation/crash_simulation.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

#include "services/aggregator/simulation/seeded_random.h"
#include "services/aggregator/simulation/wanted_seeds.h"

namespace muster::testing {
namespace {

constexpr uint64_t kSeeds = 2'000;
constexpr uint64_t kParts = 8;  // of the seeds, for the shards of the test

// Seeds that find a defect which the code had, or would have without a line that looks unnecessary.
constexpr uint64_t kFoundSeeds[] = {
    1,            // The database stayed in another journal mode after a failed sync.
    67,           // The store continued after a failed sync.
    116,    241,  // The log of a failed sync was checkpointed as if it were durable.
    201,          // A read that fails once in a check counted as damage.
    230,          // A blob that was found after a kill was recorded before its name was durable.
    1409,         // A staged file continued after a failed sync.
    6954,         // A new log was checkpointed before its name was durable.
    16277,        // The journal of a new database could not be seen at the next start.
    100318,       // The name of the journal of a new database was not durable.
};

// Returns the steps of the simulation.
std::string RunSeed(uint64_t seed) {
  SeedRandomIds(seed);
  CrashSimulation simulation(seed);
  const absl::Status outcome = simulation.Run();
  EXPECT_TRUE(outcome.ok()) << "seed " << seed << ": " << outcome << "\nsteps:\n"
                            << simulation.log() << "repeat with: bazel test //services/aggregator/"
                            << "simulation:crash_simulation_test --test_env=CRASH_SEEDS=" << seed
                            << "-" << seed;
  if (std::getenv("CRASH_LOG") != nullptr) std::cout << "seed " << seed << "\n" << simulation.log();
  return outcome.ok() ? simulation.log() : "";
}

class CrashSimulationSeedsTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(CrashSimulationSeedsTest, AcknowledgedResultsSurviveAnyCrash) {
  const auto [first, last] = WantedSeeds("CRASH_SEEDS", kSeeds);
  int failed = 0;
  for (uint64_t seed = first + GetParam(); seed <= last && failed < 5; seed += kParts) {
    if (RunSeed(seed).empty()) ++failed;
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, CrashSimulationSeedsTest, ::testing::Range(uint64_t{0}, kParts));

TEST(CrashSimulationTest, FoundSeedsPass) {
  for (const uint64_t seed : kFoundSeeds) RunSeed(seed);
}

TEST(CrashSimulationTest, EqualSeedsDoTheSame) {
  for (uint64_t seed = 1; seed <= 10; ++seed) EXPECT_EQ(RunSeed(seed), RunSeed(seed));
}

}  // namespace
}  // namespace muster::testing
