// The interface of the sources of secrets.
#ifndef MUSTER_SERVICES_JOBS_SECRET_PROVIDER_H_
#define MUSTER_SERVICES_JOBS_SECRET_PROVIDER_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/secrets.pb.h"
#include "services/common/templates/secrets.h"

namespace muster {

// Finds versions, and reads values. Thread-safe.
class SecretProvider {
 public:
  virtual ~SecretProvider() = default;

  // Replaces version 0 by the newest one. Fails if a version does not exist. May wait as Read.
  virtual absl::Status Resolve(SecretReferences* references) = 0;

  // Checks references with versions as far as that is possible without a wait for another machine.
  virtual absl::Status Check(const SecretReferences& references) = 0;

  // Returns the values in the order of the references; the caller wipes them
  // (jobs/secrets_exchange.h). Waits for the disk or another machine.
  virtual absl::StatusOr<v1::SecretValues> Read(const SecretReferences& references) = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_SECRET_PROVIDER_H_
