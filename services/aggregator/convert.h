// Between what the store keeps and what the API says.
#ifndef MUSTER_SERVICES_AGGREGATOR_CONVERT_H_
#define MUSTER_SERVICES_AGGREGATOR_CONVERT_H_

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include <cstdint>

#include "absl/status/status.h"
#include "muster/v1/results.pb.h"
#include "muster/v1/runs.pb.h"
#include "muster/v1/types.pb.h"
#include "services/common/identity/policy.h"
#include "services/common/rpc/proto_time.h"
#include "services/common/store/records.h"

namespace muster {

// Times are microseconds since the epoch; 0 is "not set" and leaves the field absent.
google::protobuf::Timestamp ToTimestamp(int64_t micros);
google::protobuf::Duration ToDuration(int64_t micros);

v1::Outcome ToProto(Outcome outcome);
v1::Result ToProto(const ResultRecord& result);
v1::Run ToProto(const RunRecord& run);

ResultKey FromProto(const v1::ResultKey& key);

// OK if the key's names are names: INVALID_ARGUMENT (INVALID_NAME) that says which is not.
absl::Status CheckKey(const ResultKey& key);

// OK for 16 lower-case hex digits.
absl::Status CheckRunId(const std::string& run);

// How `caller` delivers.
Delivery DeliveryBy(const Caller& caller);

// The upload that a request describes; INVALID_ARGUMENT if it is out of the API's limits.
absl::StatusOr<UploadRecord> FromProto(const v1::ResultDescription& description,
                                       const Caller& caller);

// A pair that the caller may always ask for: its own, as far as its identity names one.
Resource OwnPair(const Caller& caller);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_CONVERT_H_
