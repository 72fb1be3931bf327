#include "services/aggregator/simulation/wanted_seeds.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace muster::testing {

std::pair<uint64_t, uint64_t> WantedSeeds(const char* variable, uint64_t ordinary) {
  std::pair<uint64_t, uint64_t> seeds = {1, ordinary};
  const char* wanted = std::getenv(variable);
  if (wanted == nullptr) return seeds;
  const std::pair<std::string, std::string> range = absl::StrSplit(wanted, '-');
  EXPECT_TRUE(absl::SimpleAtoi(range.first, &seeds.first) &&
              absl::SimpleAtoi(range.second, &seeds.second))
      << variable << " must be FIRST-LAST";
  return seeds;
}

}  // namespace muster::testing
