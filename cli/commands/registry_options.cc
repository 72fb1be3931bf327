#include "cli/commands/registry_options.h"

#include "absl/strings/str_cat.h"
#include "cli/exit_code.h"
#include "cli/output/format.h"
#include "services/common/base/image_reference.h"

namespace muster::cli {

void AddRegistryOptions(CLI::App& command, const std::string& description,
                        RegistryArguments& arguments) {
  command.add_option("--registry", arguments.registry, description)->type_name("HOST[/PREFIX]");
  command
      .add_option("--authfile", arguments.options.auth_file,
                  "The credentials of registries, in the format of Docker's config.json (default: "
                  "those of skopeo, then ~/.docker/config.json)")
      ->type_name(kFileValue);
  command
      .add_option("--registry-ca", arguments.options.ca_file,
                  "The CA certificates of registries, in PEM (default: those of this machine)")
      ->type_name(kFileValue);
}

absl::Status CheckRegistry(const RegistryArguments& arguments) {
  if (arguments.registry.empty() || IsRegistryPrefix(arguments.registry)) return absl::OkStatus();
  return UsageError(absl::StrCat("--registry: \"", Printable(arguments.registry),
                                 "\" is not HOST, HOST:PORT or one of them with /PREFIX"),
                    "Name a registry without https://, such as registry.site:5000/outside.");
}

std::string CopiedName(const RegistryArguments& arguments, const std::string& image) {
  return ImageInRegistry(image,
                         arguments.registry.empty() ? RegistryOf(image) : arguments.registry);
}

}  // namespace muster::cli
