#include "services/common/upload/delivery_signature.h"

#include "services/common/identity/result_signature.h"

namespace muster {

absl::Status VerifyDeliverySignature(const VerifiedResult& verified, std::string_view fleet,
                                     const Certificate& root, absl::Time now) {
  const ResultRecord& result = verified.result;
  const SignedResult signed_result = {.run = result.key.run,
                                      .plugin = result.key.plugin,
                                      .node = result.key.node,
                                      .attempt = verified.attempt,
                                      .size = result.size,
                                      .sha256 = result.sha256,
                                      .is_error = result.outcome == Outcome::kError,
                                      .media_type = result.media_type,
                                      .file_name = result.file_name};
  return VerifyResultSignature(result.delivery.signature, result.delivery.signer_pem, signed_result,
                               fleet, root, now);
}

}  // namespace muster
