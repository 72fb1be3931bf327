// Parses any text as a token file. One that is accepted is written and accepted again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "services/common/identity/join_token.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto token = muster::ParseJoinToken({reinterpret_cast<const char*>(data), size});
  if (!token.ok()) return 0;
  const auto again = muster::ParseJoinToken(muster::JoinTokenToJson(*token).view());
  if (!again.ok() || again->id != token->id) std::abort();
  return 0;
}
