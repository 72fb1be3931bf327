// The state of the aggregator on its disk.
#ifndef MUSTER_SERVICES_AGGREGATOR_FOUNDATION_H_
#define MUSTER_SERVICES_AGGREGATOR_FOUNDATION_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/aggregator/config.h"
#include "services/aggregator/nodes/command_trust.h"
#include "services/aggregator/runs/authorities.h"
#include "services/common/base/disk_reserve.h"
#include "services/common/base/metrics.h"
#include "services/common/base/timed_file_ops.h"
#include "services/common/blob/blob_store.h"
#include "services/common/identity/certificate_files.h"
#include "services/common/store/sqlite/sqlite_store.h"

namespace muster {

// The state that all other parts of the aggregator use. A part may use those before it, which are
// closed after it.
struct Foundation {
  std::unique_ptr<Metrics> metrics;
  std::unique_ptr<DiskReserve> reserve;
  std::unique_ptr<TimedFileOps> blob_files;
  std::unique_ptr<CertificateFiles> tls;
  std::unique_ptr<SqliteStore> store;
  std::unique_ptr<BlobStore> blobs;
  std::unique_ptr<Authorities> authorities;
  std::unique_ptr<CommandTrust> commands;
};

// Opens the state in the folder of the configuration. `fail` is called, by any thread, when the
// store cannot continue. Fails if any part is damaged or in use by another process.
absl::StatusOr<Foundation> OpenFoundation(const AggregatorConfig& config,
                                          std::function<void(const absl::Status&)> fail);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_FOUNDATION_H_
