#include <csignal>

#include "cli/app.h"
#include "cli/output/console.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a write to a closed pipe fails instead of ending the program
  muster::cli::Console console = muster::cli::SystemConsole();
  return muster::cli::RunProgram(argc, argv, console);
}
