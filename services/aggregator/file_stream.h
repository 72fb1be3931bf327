// Streams stored bytes to a reader, chunk by chunk.
#ifndef MUSTER_SERVICES_AGGREGATOR_FILE_STREAM_H_
#define MUSTER_SERVICES_AGGREGATOR_FILE_STREAM_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "muster/v1/types.pb.h"
#include "services/aggregator/verify/damage.h"
#include "services/common/base/io.h"
#include "services/common/blob/blob_store.h"
#include "services/common/rpc/stream.h"
#include "services/common/store/state_store.h"

namespace muster {

// Returns the current result of a pair. Fails with NOT_FOUND for an unknown run, PERMISSION_DENIED
// (PAIR_NOT_PLANNED) for a pair that is not planned.
absl::StatusOr<ResultRecord> FindResult(StateStore& store, const ResultKey& key);

// Returns a result's bytes from `offset`, at most its size, inline or from a blob. NOT_FOUND or
// OUT_OF_RANGE if its blob is missing or too short.
absl::StatusOr<std::unique_ptr<ByteSource>> OpenResult(BlobStore& blobs, ResultRecord result,
                                                       int64_t offset);

using FileChunkSource = StreamSource<v1::FileChunk>;

// Streams a result from `offset`. Fails with RESULT_DAMAGED, and records the damage, if its blob is
// missing or has another size. A stream from the begin does so at its end if the CRC32C differs.
absl::StatusOr<std::unique_ptr<FileChunkSource>> StreamResult(BlobStore& blobs,
                                                              const DamageRecorder& recorder,
                                                              ResultRecord result, int64_t offset);

// Returns `source`, which releases `hold` when it is destroyed.
std::unique_ptr<FileChunkSource> WithHold(std::unique_ptr<FileChunkSource> source,
                                          std::shared_ptr<void> hold);

// Streams the archive of a run from `offset`. Fails with ARCHIVE_DAMAGED like StreamResult;
// compares the SHA-256.
absl::StatusOr<std::unique_ptr<FileChunkSource>> StreamArchive(BlobStore& blobs,
                                                               const DamageRecorder& recorder,
                                                               const std::string& run,
                                                               const ArchiveRecord& archive,
                                                               int64_t offset);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_FILE_STREAM_H_
