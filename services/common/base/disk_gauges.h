// Gauges of the disk of a service.
#ifndef MUSTER_SERVICES_COMMON_BASE_DISK_GAUGES_H_
#define MUSTER_SERVICES_COMMON_BASE_DISK_GAUGES_H_

#include <cstdint>
#include <string>

#include "services/common/base/disk_reserve.h"
#include "services/common/base/metrics.h"

namespace muster {

// Returns the size of the file system of a folder in bytes; NaN if it cannot be queried.
double DiskSize(const std::string& folder);

// Adds the free space and the size of the file system of `folder`. If it cannot be queried they
// have no value, so that no alert reports a full disk.
void AddDiskGauges(Metrics& metrics, const std::string& folder);

// Adds the reserved space. It has no value if `configured` (bytes) is 0. `reserve` outlives
// `metrics`, or the last request for their text.
void AddReserveGauge(Metrics& metrics, const DiskReserve& reserve, int64_t configured);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_DISK_GAUGES_H_
