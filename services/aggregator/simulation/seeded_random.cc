#include "services/aggregator/simulation/seeded_random.h"

#include <sys/random.h>

#include <cstddef>
#include <random>

namespace {

std::mt19937_64& Chance() {
  static std::mt19937_64& chance = *new std::mt19937_64;
  return chance;
}

}  // namespace

// Takes the place of the function of the library in this program.
extern "C" ssize_t getrandom(void* buffer, size_t size, unsigned int /*flags*/) {
  auto* bytes = static_cast<unsigned char*>(buffer);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>(Chance()());
  return static_cast<ssize_t>(size);
}

// As does this, which back-offs draw their seeds from.
std::random_device::result_type std::random_device::_M_getval() {
  return static_cast<result_type>(Chance()());
}

namespace muster::testing {

void SeedRandomIds(uint64_t seed) { Chance().seed(seed); }

}  // namespace muster::testing
