#!/bin/sh
# Every Bazel test rule names this target; `bazel coverage` itself needs the network.
echo "bazel coverage is not available: use gcovr" >&2
exit 1
