// The files of the built versions of templates.
#ifndef MUSTER_SERVICES_JOBS_TEMPLATE_FILES_H_
#define MUSTER_SERVICES_JOBS_TEMPLATE_FILES_H_

#include <string>

#include "absl/status/statusor.h"
#include "muster/v1/deployments.pb.h"
#include "muster/v1/jobs.pb.h"
#include "muster/v1/templates.pb.h"
#include "services/common/store/sqlite/connection.h"
#include "services/common/store/sqlite/local_database.h"

namespace muster {

// Stores the files of a version in the transaction that stores the version. `built`: the build with
// its description.
void StoreTemplateFiles(sqlite::Connection& db, const std::string& name, const std::string& version,
                        const v1::Deployment& built);

// Reads them. Thread-safe; calls wait for the disk.
class TemplateFiles {
 public:
  // `database` with the schema of jobs_schema.h outlives this object.
  explicit TemplateFiles(sqlite::LocalDatabase& database) : database_(database) {}

  // Sets the files of a version. They are empty if they are not known: the version was not built,
  // or in another fleet, or by an earlier Muster.
  absl::Status AddTo(v1::Template* version);

  // Returns the build that created a version, as an operator signed it: small files have their
  // content. FAILED_PRECONDITION (TEMPLATE_FILES_NOT_STORED) for such a version, and if the build
  // was removed since.
  absl::StatusOr<v1::Command::Build> FindBuild(const std::string& name, const std::string& version);

 private:
  sqlite::LocalDatabase& database_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_TEMPLATE_FILES_H_
