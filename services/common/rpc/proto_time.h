// Conversion of times and durations in messages.
#ifndef MUSTER_SERVICES_COMMON_RPC_PROTO_TIME_H_
#define MUSTER_SERVICES_COMMON_RPC_PROTO_TIME_H_

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include "absl/time/time.h"

namespace muster {

// Convert from messages; values that are out of range are clamped.
absl::Time FromProto(const google::protobuf::Timestamp& time);
absl::Duration FromProto(const google::protobuf::Duration& duration);

// Convert to messages, to the nanosecond; an infinite value becomes the last valid one.
void ToProto(absl::Time time, google::protobuf::Timestamp* to);
void ToProto(absl::Duration duration, google::protobuf::Duration* to);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_PROTO_TIME_H_
