#include "cli/commands/info_commands.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/commands/completion.h"
#include "cli/exit_code.h"
#include "services/common/version.h"

namespace muster::cli {
namespace {

constexpr char kApiVersion[] = "muster.v1";

int PrintVersion(Console& console, bool json) {
  if (json) {
    console.out << nlohmann::ordered_json{{"version", kVersion}, {"api", kApiVersion}}.dump()
                << "\n";
  } else {
    console.out << "muster " << kVersion << "\n";
  }
  return kExitOk;
}

void AddVersion(CommandLine& line) {
  CLI::App& command = AddCommand(line.app, {.name = "version",
                                            .summary = "Show the version of this program",
                                            .example = "muster version"});
  AddJsonOption(line, command);
  SetAction(line, command, [&line](Console& console) { return PrintVersion(console, line.json); });
}

void AddCompletion(CommandLine& line) {
  CLI::App& command = AddCommand(
      line.app, {.name = "completion",
                 .summary = "Print a completion script for a shell",
                 .example = "source <(muster completion bash)\n"
                            "muster completion zsh > ~/.zfunc/_muster\n"
                            "muster completion fish > ~/.config/fish/completions/muster.fish"});
  const auto shell = std::make_shared<std::string>();
  AllowOnly(*command.add_option("SHELL", *shell, "The shell")->required(), "bash|zsh|fish");
  SetAction(line, command, [&line, shell](Console& console) {
    const Shell which = *shell == "bash"  ? Shell::kBash
                        : *shell == "zsh" ? Shell::kZsh
                                          : Shell::kFish;
    console.out << CompletionScript(line.app, which);
    return kExitOk;
  });
}

}  // namespace

void AddInfoCommands(CommandLine& line) {
  AddVersion(line);
  AddCompletion(line);
}

}  // namespace muster::cli
