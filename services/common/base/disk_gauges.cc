#include "services/common/base/disk_gauges.h"

#include <filesystem>
#include <limits>
#include <system_error>

namespace muster {
namespace {

using Space = std::filesystem::space_info;

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

double BytesOf(const std::string& folder, std::uintmax_t Space::* what) {
  std::error_code error;
  const Space space = std::filesystem::space(folder, error);
  return error ? kNoValue : static_cast<double>(space.*what);
}

}  // namespace

double DiskSize(const std::string& folder) { return BytesOf(folder, &Space::capacity); }

void AddDiskGauges(Metrics& metrics, const std::string& folder) {
  metrics.AddSampledGauge("muster_disk_free_bytes",
                          "Free space of the disk with results and state.",
                          [folder] { return BytesOf(folder, &Space::available); });
  metrics.AddSampledGauge("muster_disk_size_bytes", "Size of the disk with results and state.",
                          [folder] { return DiskSize(folder); });
}

void AddReserveGauge(Metrics& metrics, const DiskReserve& reserve, int64_t configured) {
  metrics.AddSampledGauge(
      "muster_disk_reserve_bytes",
      "Disk space that is kept for a full disk; 0 while it is released.", [&reserve, configured] {
        return configured > 0 ? static_cast<double>(reserve.reserved()) : kNoValue;
      });
}

}  // namespace muster
