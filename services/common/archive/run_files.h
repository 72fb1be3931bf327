// The small files of an archive that describe the run.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_RUN_FILES_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_RUN_FILES_H_

#include <string>

#include "services/common/archive/archive_builder.h"

namespace muster {

// meta/config.json: the run in Sonobuoy's words. Its "Version" tells readers which layout the
// archive has, in Sonobuoy's count; our own version is in "MusterVersion".
std::string ConfigJson(const ArchiveRun& run);

// meta/info.json: the plugins of the run.
std::string InfoJson(const ArchiveRun& run);

// meta/query-time.json and meta/clusterhealth.json: no cluster was asked, and they say just that.
// Without the second, `sonobuoy results --mode detailed` ends with an error.
std::string QueryTimeJson();
std::string ClusterHealthJson();

// plugins/<plugin>/definition.json: the definition's YAML as JSON, or as a JSON text if it cannot
// be read.
std::string DefinitionJson(const ArchivePlugin& plugin);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_RUN_FILES_H_
