// The options of commands that copy images.
#ifndef MUSTER_CLI_COMMANDS_REGISTRY_OPTIONS_H_
#define MUSTER_CLI_COMMANDS_REGISTRY_OPTIONS_H_

#include <string>

#include "absl/status/status.h"
#include "cli/bundles/image_copier.h"
#include "cli/commands/command.h"

namespace muster::cli {

struct RegistryArguments {
  std::string registry;  // HOST or HOST/PREFIX; empty: images are at the names of the documents
  RegistryOptions options;
};

// Adds --registry, with this description, --authfile and --registry-ca.
void AddRegistryOptions(CLI::App& command, const std::string& description,
                        RegistryArguments& arguments);

// Returns a usage error if --registry is no registry.
absl::Status CheckRegistry(const RegistryArguments& arguments);

// Returns the name by which an image of a document is copied.
std::string CopiedName(const RegistryArguments& arguments, const std::string& image);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_REGISTRY_OPTIONS_H_
