// The metadata of calls that a relay forwards.
#ifndef MUSTER_SERVICES_COMMON_RPC_FORWARDED_METADATA_H_
#define MUSTER_SERVICES_COMMON_RPC_FORWARDED_METADATA_H_

#include <grpcpp/client_context.h>

#include <cstddef>
#include <initializer_list>
#include <string_view>

#include "absl/status/status.h"

namespace muster {

// The metadata that a relay adds to one call. The rest of kMaxMetadataBytes is for the headers of
// gRPC: path, authority, user agent, deadline and encodings.
inline constexpr size_t kMaxForwardedMetadata = 7 * 1024 + 512;

struct MetadataEntry {
  const char* key;
  std::string_view value;
};

// Adds the entries to a call, or none: PERMISSION_DENIED (IDENTITY_NOT_FORWARDABLE) if they are
// larger than kMaxForwardedMetadata. All clients of a relay share its connection, and gRPC decodes
// the later calls of a connection wrongly after one whose metadata exceeds the limit of the server.
absl::Status AddMetadata(grpc::ClientContext& context,
                         std::initializer_list<MetadataEntry> entries);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_FORWARDED_METADATA_H_
