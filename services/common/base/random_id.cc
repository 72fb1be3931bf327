#include "services/common/base/random_id.h"

#include <sys/random.h>

#include <cstdlib>

#include "absl/strings/escaping.h"

namespace muster {

std::string RandomHex(size_t bytes) {
  std::string random(bytes, '\0');
  // Up to 256 bytes come whole once the kernel's pool is ready (getrandom(2)).
  if (getrandom(random.data(), bytes, 0) != static_cast<ssize_t>(bytes)) std::abort();
  return absl::BytesToHexString(random);
}

}  // namespace muster
