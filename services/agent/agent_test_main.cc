// The agent as a program, for tests of its exit codes and of its sudden end.
#include <string>

#include "services/agent/agent.h"
#include "services/agent/submit.h"
#include "services/common/base/process_setup.h"

int main(int argc, char** argv) {
  if (!muster::SetUpProcess().ok()) return 1;
  const std::string config = argc > 1 ? argv[1] : "";
  if (argc > 2) return muster::RunSubmit({config, argv[2]});
  return muster::RunAgent({config});
}
