#include <csignal>

#include "cli/app.h"
#include "cli/output/console.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE,
              SIG_IGN);  // a closed pipe is an error of one write, not an end without words
  muster::cli::Console console = muster::cli::SystemConsole();
  return muster::cli::RunProgram(argc, argv, console);
}
