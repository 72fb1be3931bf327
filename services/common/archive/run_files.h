// Writes the small files of an archive that describe the run.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_RUN_FILES_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_RUN_FILES_H_

#include <string>

#include "services/common/archive/archive_builder.h"

namespace muster {

// Returns meta/config.json: the run in Sonobuoy's terms. "Version" contains the version of
// Sonobuoy's layout; "MusterVersion" contains Muster's.
std::string ConfigJson(const ArchiveRun& run);

// Returns meta/info.json: the plugins of the run.
std::string InfoJson(const ArchiveRun& run);

// Return meta/query-time.json and meta/clusterhealth.json, which state that no cluster was queried.
// Without the second, `sonobuoy results --mode detailed` ends with an error.
std::string QueryTimeJson();
std::string ClusterHealthJson();

// Returns plugins/<plugin>/definition.json: the definition's YAML as JSON, or as a JSON text if it
// cannot be parsed.
std::string DefinitionJson(const ArchivePlugin& plugin);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_RUN_FILES_H_
