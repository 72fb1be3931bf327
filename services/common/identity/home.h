// The layout of $MUSTER_HOME. Only its owner has access: folders 0700, files 0600 (certificates may
// be readable).
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_HOME_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_HOME_H_

#include <string>
#include <string_view>
#include <utility>

#include "services/common/identity/identity.h"

namespace muster {

// Computes paths; accesses no file. Immutable; thread-safe.
class Home {
 public:
  explicit Home(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }

  // The fleet's name: {"fleet": "..."}.
  std::string FleetFile() const { return In("fleet.json"); }

  // The fleet's root. Its key may be removed and kept offline.
  std::string RootFolder() const { return In("root"); }
  std::string RootKey() const { return In("root/ca.key"); }
  std::string RootCertificate() const { return In("root/ca.crt"); }

  // The folder of a service.
  std::string ServiceFolder(ServiceRole role) const { return In(ServiceRoleName(role)); }
  std::string TlsFolder(ServiceRole role) const { return ServiceFolder(role) + "/tls"; }
  std::string IntermediateKey() const { return In("aggregator/intermediate.key"); }
  std::string IntermediateCertificate() const { return In("aggregator/intermediate.crt"); }
  std::string StoreKey() const { return In("aggregator/store.key"); }
  // The certificate of the operator that Bootstrap created. The aggregator did not issue it.
  std::string FirstOperatorCertificate() const { return In("aggregator/first-operator.crt"); }
  std::string StateDatabase() const { return In("aggregator/state.db"); }

  // Context files of operators created here, and the one that this home's own commands use.
  std::string OperatorsFolder() const { return In("operators"); }
  std::string OperatorContextFile(std::string_view name) const {
    return OperatorsFolder() + "/" + std::string(name) + ".json";
  }
  std::string ContextFile() const { return In("context.json"); }

 private:
  std::string In(std::string_view name) const { return path_ + "/" + std::string(name); }

  const std::string path_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_HOME_H_
