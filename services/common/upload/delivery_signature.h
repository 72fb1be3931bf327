// The signature of a node over a result that it delivered.
#ifndef MUSTER_SERVICES_COMMON_UPLOAD_DELIVERY_SIGNATURE_H_
#define MUSTER_SERVICES_COMMON_UPLOAD_DELIVERY_SIGNATURE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/v1/results.pb.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/result_signature.h"
#include "services/common/upload/result_sink.h"

namespace muster {

// The limits of message Signature of the API, in bytes. The signature of the largest curve in use
// (P-521) has 139.
inline constexpr size_t kMaxResultSignature = 256;
inline constexpr size_t kMaxSignerChainPem = 16 * 1024;

// Returns OK if a received signature is absent or within its limits, so that it may be verified or
// stored. INVALID_ARGUMENT (INVALID_SIGNATURE) if its value or its certificates are too large, or
// if there are certificates without a value.
absl::Status ValidateSignature(const v1::Signature& signature);

// The part of a delivery that the sender of an upload may not know when it opens it.
struct SignedContent {
  int64_t size = 0;
  std::string sha256;
  bool is_error = false;
};

// Returns the fields that a node signs. `record` is an UploadRecord or a ResultRecord.
template <typename Record>
SignedResult SignedFieldsOf(const Record& record, int64_t attempt, const SignedContent& content) {
  return {.run = record.key.run,
          .plugin = record.key.plugin,
          .node = record.key.node,
          .attempt = attempt,
          .size = content.size,
          .sha256 = content.sha256,
          .is_error = content.is_error,
          .media_type = record.media_type,
          .file_name = record.file_name};
}

// Verifies the signature of the result, which must have one, over its attempt and what was
// received. Fails as VerifyResultSignature.
absl::Status VerifyDeliverySignature(const VerifiedResult& verified, std::string_view fleet,
                                     const Certificate& root, absl::Time now);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_UPLOAD_DELIVERY_SIGNATURE_H_
