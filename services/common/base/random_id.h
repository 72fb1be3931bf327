// Unique identifiers that cannot be guessed.
#ifndef MUSTER_SERVICES_COMMON_BASE_RANDOM_ID_H_
#define MUSTER_SERVICES_COMMON_BASE_RANDOM_ID_H_

#include <cstddef>
#include <string>

namespace muster {

// Returns `bytes` (at most 256) random bytes of the kernel, in lower-case hexadecimal. Ends the
// process if the kernel returns none: without identifiers it could not continue.
std::string RandomHex(size_t bytes);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_RANDOM_ID_H_
