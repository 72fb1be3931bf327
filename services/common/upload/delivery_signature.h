// The signature of a node over a result that it delivered.
#ifndef MUSTER_SERVICES_COMMON_UPLOAD_DELIVERY_SIGNATURE_H_
#define MUSTER_SERVICES_COMMON_UPLOAD_DELIVERY_SIGNATURE_H_

#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/common/identity/certificate.h"
#include "services/common/upload/result_sink.h"

namespace muster {

// Verifies the signature of the result, which must have one, over its attempt and what was
// received. Fails as VerifyResultSignature.
absl::Status VerifyDeliverySignature(const VerifiedResult& verified, std::string_view fleet,
                                     const Certificate& root, absl::Time now);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_UPLOAD_DELIVERY_SIGNATURE_H_
