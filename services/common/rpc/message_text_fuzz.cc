// Cleans any bytes as a message with text. A cleaned message needs no second cleaning.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "muster/v1/results.pb.h"
#include "services/common/rpc/message_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto* type = muster::v1::SubmitResultRequest::descriptor();
  const auto cleaned = muster::CleanMessage(*type, bytes);
  if (cleaned.has_value() && muster::CleanMessage(*type, *cleaned).has_value()) std::abort();
  muster::v1::SubmitResultRequest request;
  if (cleaned.has_value() && request.ParseFromArray(data, static_cast<int>(size))) std::abort();
  return 0;
}
