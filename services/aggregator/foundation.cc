#include "services/aggregator/foundation.h"

#include <string>
#include <utility>

#include "services/common/base/file_ops.h"
#include "services/common/base/status_macros.h"
#include "services/common/blob/files/files_blob_store.h"
#include "services/common/identity/authority_files.h"

namespace muster {

absl::StatusOr<Foundation> OpenFoundation(const AggregatorConfig& config,
                                          std::function<void(const absl::Status&)> fail) {
  Foundation f;
  const std::string& folder = config.state_folder;
  const Clock& clock = SystemClock();
  // First: the rest of the start may need the reserved space.
  f.reserve = std::make_unique<DiskReserve>(PosixFileOps(), folder + "/" + kDiskReserveFile,
                                            static_cast<int64_t>(config.disk_reserve));
  f.reserve->Start();
  ASSIGN_OR_RETURN(f.tls, CertificateFiles::Open(folder + "/tls", folder + "/tls-published",
                                                 ServiceRole::kAggregator, clock.Now()));
  FilesBlobStoreOptions blob_options;
  blob_options.root = folder + "/blobs";
  SqliteStoreOptions store_options;
  store_options.path = folder + "/state.db";
  store_options.has_data = [root = blob_options.root] { return HasHadBlobs(PosixFileOps(), root); };
  store_options.on_fatal = std::move(fail);
  store_options.check_data = [reserve = f.reserve.get()](int64_t bytes) {
    return reserve->CheckData(bytes);
  };
  store_options.make_room = [reserve = f.reserve.get()] { return reserve->Release(); };
  ASSIGN_OR_RETURN(f.store, OpenSqliteStore(std::move(store_options)));
  f.metrics = std::make_unique<Metrics>();
  const Histogram fsync = f.metrics->AddHistogram(
      "muster_fsync_seconds", "Time of each fsync of uploads and archives.", LatencyBounds());
  f.blob_files = std::make_unique<TimedFileOps>(
      PosixFileOps(), clock,
      [fsync](absl::Duration took) { fsync.Observe(absl::ToDoubleSeconds(took)); });
  ASSIGN_OR_RETURN(f.blobs, OpenFilesBlobStore(std::move(blob_options), *f.blob_files));
  ASSIGN_OR_RETURN(auto intermediate, LoadIntermediate(folder));
  ASSIGN_OR_RETURN(auto wrap, KeyWrap::Open(folder + "/store.key"));
  f.authorities =
      std::make_unique<Authorities>(std::move(intermediate), std::move(wrap), *f.store, clock);
  // Created before this service first ran: without its record the first operator could not be
  // listed or revoked.
  RETURN_IF_ERROR(f.authorities->LoadOperators());
  RETURN_IF_ERROR(f.authorities->ImportOperator(folder + "/first-operator.crt"));
  ASSIGN_OR_RETURN(auto commands,
                   CommandAuthority::Ensure(folder, f.authorities->fleet(), clock.Now()));
  f.commands = std::make_unique<CommandTrust>(std::move(commands), *f.store, clock);
  return f;
}

}  // namespace muster
