// Crashes, failing disks and a failing network under a whole fleet, over many seeds.
//
//   bazel test //services/simulation:world_test
//     --test_env=WORLD_SEEDS=FIRST-LAST    # these seeds instead of the ordinary ones; one: N-N
//     --test_env=WORLD_LOG=1               # prints the steps of each
#include "services/simulation/world.h"

#include <gtest/gtest.h>

#include "services/aggregator/simulation/simulated_fleet.h"
#include "services/simulation/world_seeds.h"

namespace muster::testing {
namespace {

constexpr int kCrashes = 50;  // of a seed

WorldRun RunSeed(uint64_t seed) {
  World world(seed, kCrashes);
  const absl::Status outcome = world.Run();
  return {outcome, world.crashes(), world.log()};
}

class WorldSeedsTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  // The keys of the fleet do not follow the seed.
  static void SetUpTestSuite() { SimulatedFleet::Get(); }
};

TEST_P(WorldSeedsTest, PromisesHoldUnderAnyFault) {
  // 1753, 5124, 7534, 7930, 9755: the owner of an upload returns after its relay and a restart.
  // 1409, 10845: the board waits for a lost connection while the last phase begins.
  RunSeeds({.name = "world_test",
            .seeds = 60,
            .part = GetParam(),
            .found = {1409, 1753, 5124, 7534, 7930, 9755, 10845}},
           RunSeed);
}

INSTANTIATE_TEST_SUITE_P(Parts, WorldSeedsTest, ::testing::Range(uint64_t{0}, kSeedParts));

TEST(WorldTest, EqualSeedsDoTheSame) {
  SimulatedFleet::Get();
  for (uint64_t seed = 1; seed <= 2; ++seed) EXPECT_EQ(LogOf(seed, RunSeed), LogOf(seed, RunSeed));
}

}  // namespace
}  // namespace muster::testing
