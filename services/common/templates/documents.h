// The documents of template types and templates.
//
//   apiVersion: muster/v1
//   kind: TemplateType
//   name: ansible
//   version: 1.2.0                      # Semantic Versioning 2.0.0
//   description: runs a playbook
//   image: registry.example/types/ansible@sha256:...
//   adHoc: false                        # true: a deployment brings files, at /files
//   command: [sh, /files/main.sh]       # only with adHoc; default: that of the image
//   contract: 1                         # of what the container gets and returns
//   actions: [deploy, destroy]          # default: [deploy]
//   idempotent: [deploy]                # of the actions; default: none
//   limits: {memory: 512MiB, cpus: 1, processes: 256, time: 1h, output: 16MiB}
//   network: none                       # or the name of a network of the nodes' Docker
//   build: {folder: /work}              # its templates may be built: their files are here
//   parameters: {...}                   # parameters.h
//   outputs:
//     url: {schema: {type: string}, required: true, sensitive: false, description: where it runs}
//   secrets:
//     db: {required: true, description: the password of the database}
//   vault: false                        # true: the container can read them by Vault's protocol
//   definitions: {...}                  # for the references of schemas
//
// A template has the kind Template, `type: ansible@1.2.0` in place of image, adHoc, command,
// contract, actions, idempotent, network, build and vault, and may lower limits. A built one has
// the image that it runs instead of that of its type, and the source of its files:
//
//   image: registry.example/templates/web@sha256:...
//   source: {kind: git, sha256: ..., url: https://git.example/web, commit: ..., folder: site}
#ifndef MUSTER_SERVICES_COMMON_TEMPLATES_DOCUMENTS_H_
#define MUSTER_SERVICES_COMMON_TEMPLATES_DOCUMENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/templates/json_schema.h"
#include "services/common/templates/parameters.h"
#include "services/common/templates/secrets.h"

namespace muster {

// The version of the contract that this program knows.
inline constexpr int64_t kTemplateContract = 1;

struct Output {
  std::string name;
  std::string description;
  JsonSchema schema;
  bool required = false;
  bool sensitive = false;
};

// Limits of a container; nothing: those of the node's policy.
struct TemplateLimits {
  std::optional<int64_t> memory;
  std::optional<double> cpus;
  std::optional<int64_t> processes;
  std::optional<absl::Duration> time;
  std::optional<int64_t> output;
};

struct TypeDocument {
  std::string name;
  std::string version;
  std::string description;
  std::string image;
  bool ad_hoc = false;
  std::vector<std::string> command;  // empty: that of the image
  std::vector<std::string> actions;
  std::vector<std::string> idempotent;  // of the actions: to run one twice has the effect of once
  std::string network;
  std::string build_folder;  // of the files of its templates; empty: they are not built
  TemplateLimits limits;
  std::vector<Parameter> parameters;
  std::vector<Output> outputs;
  std::vector<SecretDeclaration> secrets;
  bool vault = false;  // its secrets are also served by Vault's protocol
};

struct TemplateDocument {
  std::string name;
  std::string version;
  std::string description;
  std::string type;            // NAME@VERSION
  std::string image;           // that was built for it; empty: that of its type
  v1::Command::Source source;  // of the built image
  TemplateLimits limits;
  std::vector<Parameter> parameters;
  std::vector<Output> outputs;
  std::vector<SecretDeclaration> secrets;
};

// Read a document in YAML or JSON. INVALID_ARGUMENT (INVALID_DOCUMENT) lists every mistake with its
// place, a line each.
absl::StatusOr<TypeDocument> ReadType(std::string_view text);
absl::StatusOr<TemplateDocument> ReadTemplate(std::string_view text);

// Returns the parameters of a template with those of its type. Both outlive the result. Fails with
// INVALID_ARGUMENT (INVALID_DOCUMENT) if the template widens what the type decided.
absl::StatusOr<MergedParameters> MergeTemplate(const TypeDocument& type,
                                               const TemplateDocument& own);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_TEMPLATES_DOCUMENTS_H_
