// Verifies any bytes as a statement of a node. None may be valid: the root's key signed nothing.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/time/clock.h"
#include "muster/v1/attachment.pb.h"
#include "services/common/identity/attach_statement.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  muster::v1::AttachStatement statement;
  if (!statement.ParseFromArray(data, static_cast<int>(size))) return 0;
  const std::span<const muster::Certificate> no_roots;
  if (muster::VerifyAttachStatement(statement, "fleet", no_roots, absl::Now()).ok()) std::abort();
  return 0;
}
