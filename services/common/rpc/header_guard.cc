#include "services/common/rpc/header_guard.h"

#include <dlfcn.h>

// ParsedMetadata<grpc_metadata_batch>::TrivialTraitVTable<GrpcLbClientStatsMetadata>(), the first
// lambda, which sets the value.
#define MUSTER_SET_LB_CLIENT_STATS                                                     \
  "_ZZN9grpc_core14ParsedMetadataI19grpc_metadata_batchE18TrivialTraitVTableINS_"      \
  "25GrpcLbClientStatsMetadataEEEPKNS2_6VTableEvENUlRKNS_15metadata_detail6BufferEPS1" \
  "_E_4_FUNESB_SC_"

namespace muster {

absl::Status GuardHeaders() {
  if (dlsym(RTLD_NEXT, MUSTER_SET_LB_CLIENT_STATS) != nullptr) return absl::OkStatus();
  return absl::InternalError("gRPC lacks the function of version 1.51 that sets load statistics");
}

}  // namespace muster

// Takes precedence over the function of gRPC's library, also for the library itself.
extern "C" __attribute__((visibility("default"))) void MusterDropHeader(
    const void* header, void* metadata) __asm__(MUSTER_SET_LB_CLIENT_STATS);

void MusterDropHeader(const void* /*header*/, void* /*metadata*/) {}
