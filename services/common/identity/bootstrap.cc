// Every file is written atomically, in an order in which each requires only earlier ones:
// fleet.json, root key, root certificate, intermediate key and certificate, store key, for each
// service key, root and certificate, the operator's context, the home's context.
#include "services/common/identity/bootstrap.h"

#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "services/common/base/error.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/new_name.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/identity.h"
#include "services/common/identity/authority_files.h"
#include "services/common/identity/certificate_builder.h"
#include "services/common/identity/certificate_files.h"
#include "services/common/identity/folder_lock.h"
#include "services/common/identity/identity.h"
#include "services/common/identity/key_wrap.h"
#include "services/common/identity/pem_files.h"

namespace muster {
namespace {

constexpr size_t kMaxFleetFile = 64 * 1024;
constexpr unsigned kPublic = 0644;
constexpr char kFirstOperator[] = "admin";
constexpr char kServiceName[] = "main";
constexpr std::array kServices = {ServiceRole::kAggregator, ServiceRole::kStatus,
                                  ServiceRole::kGateway, ServiceRole::kRelay, ServiceRole::kJobs};

class Bootstrapper {
 public:
  Bootstrapper(const Home& home, const BootstrapOptions& options, absl::Time now)
      : home_(home), options_(options), now_(now) {}

  absl::StatusOr<BootstrapReport> Run();

 private:
  absl::Status MakeHome();
  absl::Status EnsureFleetName();
  absl::Status EnsureStoreKey();
  absl::Status EnsureService(const Intermediate& intermediate, ServiceRole role);
  absl::Status IssueServiceCertificate(const Intermediate& intermediate, ServiceRole role,
                                       const PrivateKey& key);
  bool IsCurrent(const CertificateTrio& trio) const;
  absl::Status EnsureOperator(const Intermediate& intermediate);
  absl::StatusOr<OperatorContext> NewContext(const Intermediate& intermediate);
  absl::Status UpdateContext(const Intermediate& intermediate, OperatorContext& context,
                             bool& changed);

  const Home& home_;
  const BootstrapOptions& options_;
  const absl::Time now_;
  std::vector<std::string> hosts_;
  BootstrapReport report_;
};

absl::StatusOr<BootstrapReport> Bootstrapper::Run() {
  RETURN_IF_ERROR(MakeHome());
  ASSIGN_OR_RETURN(const auto lock, FolderLock::Take(home_.path()));
  RETURN_IF_ERROR(EnsureFleetName());
  RETURN_IF_ERROR(EnsureStoreKey());
  ASSIGN_OR_RETURN(const auto root, EnsureRoot(home_, report_.fleet, now_, report_.done));
  ASSIGN_OR_RETURN(const auto intermediate,
                   EnsureIntermediate(home_, root, report_.fleet, now_, report_.done));
  for (const ServiceRole role : kServices) {
    RETURN_IF_ERROR(EnsureService(intermediate, role));
  }
  RETURN_IF_ERROR(EnsureOperator(intermediate));
  return report_;
}

absl::Status Bootstrapper::MakeHome() {
  hosts_ = {"localhost", "127.0.0.1", "::1"};
  for (const std::string& host : options_.hosts) {
    RETURN_IF_ERROR(CheckHost(host));
    if (std::find(hosts_.begin(), hosts_.end(), host) == hosts_.end()) hosts_.push_back(host);
  }
  std::vector<std::string> folders = {home_.path(), home_.RootFolder(), home_.OperatorsFolder()};
  for (const ServiceRole role : kServices) folders.push_back(home_.TlsFolder(role));
  for (const std::string& folder : folders) {
    RETURN_IF_ERROR(MakeFolders(PosixFileOps(), folder));
  }
  return absl::OkStatus();
}

absl::Status Bootstrapper::EnsureFleetName() {
  if (!options_.fleet.empty()) {
    RETURN_IF_ERROR(CheckFleet(options_.fleet));
  }
  auto fleet = ReadFleet(home_);
  if (fleet.ok()) {
    report_.fleet = *std::move(fleet);
    if (options_.fleet.empty() || options_.fleet == report_.fleet) return absl::OkStatus();
    return errors::FleetExists(home_.path(), report_.fleet, options_.fleet);
  }
  if (fleet.status().code() != absl::StatusCode::kNotFound) return fleet.status();
  for (const std::string& file : {home_.RootKey(), home_.RootCertificate(), home_.IntermediateKey(),
                                  home_.IntermediateCertificate()}) {
    if (FileExists(file)) {
      return errors::HomeIncomplete(home_.FleetFile(), absl::StrCat(file, " exists"),
                                    "Restore it from a backup.");
    }
  }
  report_.fleet = options_.fleet;
  if (report_.fleet.empty()) {
    std::string random(4, '\0');
    if (RAND_bytes(reinterpret_cast<unsigned char*>(random.data()), 4) != 1) {
      return absl::InternalError("cannot generate random numbers");
    }
    report_.fleet = absl::StrCat("fleet-", absl::BytesToHexString(random), ".muster");
  }
  nlohmann::ordered_json json;
  json["fleet"] = report_.fleet;
  report_.done.push_back(absl::StrCat("named the fleet ", report_.fleet));
  return WriteFileAtomically(home_.FleetFile(), json.dump(2) + "\n", kPublic);
}

absl::Status Bootstrapper::EnsureStoreKey() {
  if (FileExists(home_.StoreKey())) return KeyWrap::OpenOrCreate(home_.StoreKey()).status();
  if (FileExists(home_.StateDatabase())) {
    return errors::HomeIncomplete(
        home_.StoreKey(), absl::StrCat(home_.StateDatabase(), " exists"),
        "Restore it from a backup: the keys of active runs cannot be read without "
        "it.");
  }
  // Created after the key: the folder of the aggregator was lost, with all runs and results.
  if (FileExists(home_.ContextFile())) {
    return errors::HomeIncomplete(
        home_.StoreKey(), absl::StrCat(home_.ContextFile(), " exists"),
        absl::StrCat("Mount the disk of ", home_.ServiceFolder(ServiceRole::kAggregator),
                     ", or move the home folder away and restore a backup (muster restore)."));
  }
  return KeyWrap::OpenOrCreate(home_.StoreKey()).status();
}

absl::Status Bootstrapper::EnsureService(const Intermediate& intermediate, ServiceRole role) {
  const std::string folder = home_.TlsFolder(role);
  if (FileExists(folder + "/cert.pem") && FileExists(folder + "/ca.pem") &&
      FileExists(folder + "/key.pem")) {
    const auto trio = LoadCertificateTrio(folder, role, now_);
    const std::string reason = ReasonOf(trio.status());
    if (!trio.ok() && reason != "CERTIFICATE_EXPIRED" && reason != "CERTIFICATE_NOT_YET_VALID") {
      return trio.status();
    }
    if (trio.ok() && trio->identity.fleet != report_.fleet) {
      return errors::CertificateOfOtherFleet(folder, trio->identity.fleet);
    }
    if (trio.ok() && IsCurrent(*trio)) return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const auto lock, FolderLock::Take(folder));
  if (!FileExists(folder + "/key.pem") && FileExists(folder + "/cert.pem")) {
    // Removed first, so that a crash does not leave it beside another key.
    RETURN_IF_ERROR(PosixFileOps().Remove(folder + "/cert.pem"));
  }
  ASSIGN_OR_RETURN(const auto key, EnsureKeyFile(folder + "/key.pem"));
  return IssueServiceCertificate(intermediate, role, key);
}

// Returns true if less than half of the validity has passed and the certificate names all hosts.
bool Bootstrapper::IsCurrent(const CertificateTrio& trio) const {
  const Certificate& leaf = trio.chain.front();
  const std::vector<std::string> named = leaf.Hosts();
  return now_ < RenewAt(leaf) &&
         std::all_of(
             hosts_.begin(), hosts_.end(),
             [&](const auto& host) {
               return std::find(named.begin(), named.end(), CanonicalHost(host)) != named.end();
             });
}

absl::Status Bootstrapper::IssueServiceCertificate(const Intermediate& intermediate,
                                                   ServiceRole role, const PrivateKey& key) {
  const std::string folder = home_.TlsFolder(role);
  const std::string ca = folder + "/ca.pem";
  if (!FileExists(ca)) {
    RETURN_IF_ERROR(WriteFileAtomically(ca, intermediate.root().ToPem(), kPublic));
  }
  ASSIGN_OR_RETURN(const auto roots, ReadChainFile(ca));
  if (std::find(roots.begin(), roots.end(), intermediate.root()) == roots.end()) {
    return errors::RootNotInFile(ca, home_.RootCertificate());
  }
  const ServiceIdentity name = {
      role, std::string(role == ServiceRole::kRelay ? kRootRelay : kServiceName)};
  ASSIGN_OR_RETURN(const auto certificate, intermediate.Issue(name, key.public_key(), hosts_, now_,
                                                              now_ + kServiceValidity));
  const std::vector<Certificate> chain = {certificate, intermediate.certificate()};
  report_.done.push_back(
      absl::StrCat("created the certificate of service ", ToAbsl(ServiceRoleName(role))));
  return WriteFileAtomically(folder + "/cert.pem", ChainToPem(chain), kPublic);
}

absl::StatusOr<OperatorContext> Bootstrapper::NewContext(const Intermediate& intermediate) {
  const std::string name = options_.operator_name.empty() ? kFirstOperator : options_.operator_name;
  RETURN_IF_ERROR(ValidateNewName("operator", name));
  ASSIGN_OR_RETURN(const auto key, PrivateKey::Generate());
  ASSIGN_OR_RETURN(const auto certificate, intermediate.Issue(UserIdentity{name}, key.public_key(),
                                                              {}, now_, now_ + kOperatorValidity));
  ASSIGN_OR_RETURN(auto pem, key.ToPkcs8Pem());
  OperatorContext context;
  context.fleet = report_.fleet;
  context.fleet_ca_pem = intermediate.root().ToPem();
  context.certificate_chain_pem = ChainToPem(std::vector{certificate, intermediate.certificate()});
  context.private_key_pem = std::move(pem);
  report_.done.push_back(absl::StrCat("created the operator ", name));
  return context;
}

// Renews the certificate if it is due, and stores new addresses and a new root.
absl::Status Bootstrapper::UpdateContext(const Intermediate& intermediate, OperatorContext& context,
                                         bool& changed) {
  const auto take = [&](const std::vector<std::string>& from, std::vector<std::string>& to) {
    if (from.empty() || from == to) return;
    to = from;
    changed = true;
  };
  take(options_.aggregator_targets, context.aggregator_targets);
  take(options_.status_targets, context.status_targets);
  take(options_.gateway_urls, context.gateway_urls);
  take(options_.relay_targets, context.relay_targets);
  take(options_.jobs_targets, context.jobs_targets);
  const auto roots = ParseChain(context.fleet_ca_pem);
  if (!roots.ok()) return Annotate(roots.status(), home_.ContextFile());
  if (std::find(roots->begin(), roots->end(), intermediate.root()) == roots->end()) {
    context.fleet_ca_pem += intermediate.root().ToPem();  // a root that replaces the old one
    changed = true;
  }
  ASSIGN_OR_RETURN(const auto leaf, Certificate::FromPem(context.certificate_chain_pem));
  const auto identity = ParseIdentity(leaf.Uri().value_or(""), report_.fleet);
  if (!identity.ok()) return Annotate(identity.status(), home_.ContextFile());
  report_.operator_name = std::get<UserIdentity>(identity->name).name;
  if (now_ < RenewAt(leaf)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto key, leaf.Key());
  ASSIGN_OR_RETURN(const auto renewed, intermediate.Issue(UserIdentity{report_.operator_name}, key,
                                                          {}, now_, now_ + kOperatorValidity));
  context.certificate_chain_pem = ChainToPem(std::vector{renewed, intermediate.certificate()});
  report_.done.push_back(
      absl::StrCat("renewed the certificate of operator ", report_.operator_name));
  changed = true;
  return absl::OkStatus();
}

absl::Status Bootstrapper::EnsureOperator(const Intermediate& intermediate) {
  const std::string name = options_.operator_name.empty() ? kFirstOperator : options_.operator_name;
  bool changed = false;
  auto context = ReadContext(home_.ContextFile());
  if (context.status().code() == absl::StatusCode::kNotFound) {
    changed = true;
    context = ReadContext(home_.OperatorContextFile(
        name));  // a crash interrupted the last call between these two writes
  }
  if (context.status().code() == absl::StatusCode::kNotFound) context = NewContext(intermediate);
  if (!context.ok()) return context.status();
  if (context->fleet != report_.fleet) {
    return errors::ContextOfOtherFleet(home_.ContextFile(), context->fleet, report_.fleet);
  }
  RETURN_IF_ERROR(UpdateContext(intermediate, *context, changed));
  if (!changed) return absl::OkStatus();
  RETURN_IF_ERROR(WriteContext(home_.OperatorContextFile(report_.operator_name), *context));
  // The aggregator imports it at its start: it can list or revoke only certificates that it has
  // recorded.
  RETURN_IF_ERROR(WriteFileAtomically(home_.FirstOperatorCertificate(),
                                      context->certificate_chain_pem, kPublic));
  return WriteContext(home_.ContextFile(), *context);
}

}  // namespace

absl::StatusOr<BootstrapReport> Bootstrap(const Home& home, const BootstrapOptions& options,
                                          absl::Time now) {
  return Bootstrapper(home, options, now).Run();
}

absl::StatusOr<std::string> ReadFleet(const Home& home) {
  const auto content = ReadFileBounded(home.FleetFile(), kMaxFleetFile);
  if (content.status().code() == absl::StatusCode::kNotFound) {
    return errors::HomeNotSetUp(home.path());
  }
  if (!content.ok()) return content.status();
  const auto json = nlohmann::json::parse(*content, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("fleet") || !json["fleet"].is_string()) {
    return errors::FleetFileDamaged(home.FleetFile());
  }
  auto fleet = json["fleet"].get<std::string>();
  if (absl::Status s = CheckFleet(fleet); !s.ok()) return Annotate(s, home.FleetFile());
  return fleet;
}

}  // namespace muster
