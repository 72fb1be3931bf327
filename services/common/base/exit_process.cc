#include "services/common/base/exit_process.h"

#include <cstdio>
#include <cstdlib>
#include <iostream>

namespace muster {

void ExitProcess(int code) {
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
  std::_Exit(code);
}

}  // namespace muster
