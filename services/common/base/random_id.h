// Identifiers that nobody can guess or make twice.
#ifndef MUSTER_SERVICES_COMMON_BASE_RANDOM_ID_H_
#define MUSTER_SERVICES_COMMON_BASE_RANDOM_ID_H_

#include <cstddef>
#include <string>

namespace muster {

// `bytes` (at most 256) random bytes of the kernel, in lower-case hexadecimal. Ends the process if
// the kernel has none to give: nothing that needs an identifier could go on.
std::string RandomHex(size_t bytes);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_RANDOM_ID_H_
