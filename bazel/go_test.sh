#!/bin/sh
# Run by Bazel: go vet and go test of the packages named, in the source tree, with the host's Go.
set -eu
# shellcheck source=/dev/null
. "$TEST_SRCDIR/go_host/env.sh"
HOME=${HOME:-$TEST_TMPDIR}
export HOME
cd "$(dirname "$(readlink -f go.mod)")"
go vet "$@"
go test "$@"
