#!/bin/sh
# go_test.sh MODULE PACKAGE...: runs go vet and go test of the packages of the module in that folder, in the source
# tree, with the host's Go. Called by Bazel.
set -eu
# shellcheck source=/dev/null
. "$TEST_SRCDIR/go_host/env.sh"
HOME=${HOME:-$TEST_TMPDIR}
export HOME
cd "$(dirname "$(readlink -f go.mod)")/$1"
shift
go vet "$@"
# A test that hangs ends with the stacks of its goroutines, before Bazel ends everything without them.
go test -timeout="$((${TEST_TIMEOUT:-900} * 2 / 3))s" "$@"
