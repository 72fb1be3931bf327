#include "services/common/upload/delivery_signature.h"

#include "services/common/errors/results.h"

namespace muster {

absl::Status ValidateSignature(const v1::Signature& signature) {
  if (signature.value().size() > kMaxResultSignature) {
    return errors::MalformedSignature("it is longer than 256 bytes");
  }
  if (signature.certificate_chain_pem().size() > kMaxSignerChainPem) {
    return errors::MalformedSignature("its certificates exceed 16 KiB");
  }
  if (signature.value().empty() && !signature.certificate_chain_pem().empty()) {
    return errors::MalformedSignature("there are certificates without a signature");
  }
  return absl::OkStatus();
}

absl::Status VerifyDeliverySignature(const VerifiedResult& verified, std::string_view fleet,
                                     const Certificate& root, absl::Time now) {
  const ResultRecord& result = verified.result;
  const SignedContent content = {
      .size = result.size, .sha256 = result.sha256, .is_error = result.outcome == Outcome::kError};
  return VerifyResultSignature(result.delivery.signature, result.delivery.signer_pem,
                               SignedFieldsOf(result, verified.attempt, content), fleet, root, now);
}

}  // namespace muster
