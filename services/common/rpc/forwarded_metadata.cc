#include "services/common/rpc/forwarded_metadata.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "services/common/errors/rpc.h"

namespace muster {
namespace {

// HTTP/2 counts these for each header.
constexpr size_t kBytesOfHeader = 32;

// Returns the size as a server counts it at most: gRPC may send binary values in base64.
size_t SizeOf(const MetadataEntry& entry) {
  const std::string_view key = entry.key;
  const size_t value = entry.value.size();
  return kBytesOfHeader + key.size() + (key.ends_with("-bin") ? (value + 2) / 3 * 4 : value);
}

}  // namespace

absl::Status AddMetadata(grpc::ClientContext& context,
                         std::initializer_list<MetadataEntry> entries) {
  size_t size = 0;
  for (const MetadataEntry& entry : entries) {
    size += SizeOf(entry);
    if (size <= kMaxForwardedMetadata) continue;
    return errors::IdentityNotForwardable(
        entry.key, absl::StrCat("it has ", entry.value.size(), " bytes, and all metadata at most ",
                                kMaxForwardedMetadata));
  }
  for (const MetadataEntry& entry : entries) {
    context.AddMetadata(entry.key, std::string(entry.value));
  }
  return absl::OkStatus();
}

}  // namespace muster
