// Stores a stream in a file, so that it can be read again.
#ifndef MUSTER_SERVICES_CLIENT_STREAM_SPOOL_H_
#define MUSTER_SERVICES_CLIENT_STREAM_SPOOL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "services/client/client.h"
#include "services/client/source_file.h"

namespace muster::client {

// Reads to the end into an unnamed file in `folder`, else $TMPDIR, else /var/tmp. Fails with
// OUT_OF_RANGE (RESULT_TOO_LARGE) beyond `limit` bytes, ABORTED (STREAM_FAILED) if the reader
// fails.
absl::StatusOr<std::unique_ptr<SourceFile>> SpoolStream(const Reader& reader, std::string folder,
                                                        int64_t limit);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_STREAM_SPOOL_H_
