#include "services/common/upload/delivery_signature.h"

namespace muster {

absl::Status VerifyDeliverySignature(const VerifiedResult& verified, std::string_view fleet,
                                     const Certificate& root, absl::Time now) {
  const ResultRecord& result = verified.result;
  const SignedContent content = {
      .size = result.size, .sha256 = result.sha256, .is_error = result.outcome == Outcome::kError};
  return VerifyResultSignature(result.delivery.signature, result.delivery.signer_pem,
                               SignedFieldsOf(result, verified.attempt, content), fleet, root, now);
}

}  // namespace muster
