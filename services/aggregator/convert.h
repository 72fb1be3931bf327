// Conversion between records of the store and messages of the API.
#ifndef MUSTER_SERVICES_AGGREGATOR_CONVERT_H_
#define MUSTER_SERVICES_AGGREGATOR_CONVERT_H_

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include <cstdint>

#include "absl/status/status.h"
#include "muster/v1/results.pb.h"
#include "muster/v1/runs.pb.h"
#include "muster/v1/types.pb.h"
#include "services/common/identity/rpc_authorization.h"
#include "services/common/rpc/proto_time.h"
#include "services/common/store/records.h"

namespace muster {

// Times are microseconds since the epoch; 0 means "not set" and leaves the field absent.
google::protobuf::Timestamp ToTimestamp(int64_t micros);
google::protobuf::Duration ToDuration(int64_t micros);

v1::Outcome ToProto(Outcome outcome);
v1::Result ToProto(const ResultRecord& result);
v1::Run ToProto(const RunRecord& run);

ResultKey FromProto(const v1::ResultKey& key);

// Checks the names of a key. Fails with INVALID_ARGUMENT (INVALID_NAME); the message contains the
// invalid name.
absl::Status CheckKey(const ResultKey& key);

// Checks for 16 lower-case hex digits.
absl::Status CheckRunId(const std::string& run);

// Returns how `caller` delivers.
Delivery DeliveryBy(const Caller& caller);

// Returns how the audit log names `caller`.
Actor ActorOf(const Caller& caller);

// Returns the upload that a request describes. Fails with INVALID_ARGUMENT if it exceeds the limits
// of the API.
absl::StatusOr<UploadRecord> FromProto(const v1::ResultDescription& description,
                                       const Caller& caller);

// Returns a pair that the caller may always access: its own, as far as its identity names one.
Resource OwnPair(const Caller& caller);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_CONVERT_H_
