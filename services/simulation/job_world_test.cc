// Crashes, failing disks and a failing network under the jobs of a fleet, over many seeds.
//
//   bazel test //services/simulation:job_world_test
//     --test_env=WORLD_SEEDS=FIRST-LAST    # these seeds instead of the ordinary ones; one: N-N
//     --test_env=WORLD_LOG=1               # prints the steps of each
#include "services/simulation/job_world.h"

#include <gtest/gtest.h>

#include "services/simulation/world_seeds.h"

namespace muster::testing {
namespace {

constexpr int kCrashes = 50;  // of a seed

WorldRun RunSeed(uint64_t seed) {
  JobWorld world(seed, kCrashes);
  const absl::Status outcome = world.Run();
  return {outcome, world.crashes(), world.log()};
}

class JobWorldSeedsTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(JobWorldSeedsTest, PromisesHoldUnderAnyFault) {
  // 5195: a late hello takes a node from the relay that has it.
  RunSeeds({.name = "job_world_test", .seeds = 120, .part = GetParam(), .found = {5195}}, RunSeed);
}

INSTANTIATE_TEST_SUITE_P(Parts, JobWorldSeedsTest, ::testing::Range(uint64_t{0}, kSeedParts));

}  // namespace
}  // namespace muster::testing
