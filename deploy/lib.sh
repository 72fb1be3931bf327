# Shared functions of deploy/quickstart, testing/test and testing/bench; sourced, not executed. Requires
# `root`, the checkout. The output of steps goes to one log; the screen shows the steps and their durations.
# shellcheck shell=sh

: "${root:?set root before sourcing this}"
cache=${MUSTER_CACHE:-${HOME:?HOME is not set}/.cache/muster}
log=$cache/log/${0##*/}.log
step_number=0

start_log() {
	mkdir -p "$cache/log"
	: >"$log"
}

say() {
	printf '%s\n' "$*"
	printf '%s\n' "$*" >>"$log"
}

die() {
	printf '\n%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# step TITLE COMMAND...: runs the command with its output in the log. If it fails, prints the step and the end
# of the log, and exits. Call it on its own, never in a condition: `set -e` must apply.
step() {
	step_title=$1
	shift
	step_number=$((step_number + 1))
	say "[$step_number] $step_title"
	step_begin=$(date +%s)
	step_offset=$(wc -c <"$log")
	set +e
	(
		set -e
		"$@"
	) >>"$log" 2>&1
	step_code=$?
	set -e
	if [ "$step_code" -ne 0 ]; then
		tail -c +"$((step_offset + 1))" "$log" | tail -n 25 | sed 's/^/    | /' >&2
		die "step $step_number ($step_title) failed with exit code $step_code. The lines above are the end of $log"
	fi
	say "    done in $(($(date +%s) - step_begin)) s"
}

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die "cannot install packages: run this as root, or install sudo"
	fi
}

# install_packages SECTION...: installs the packages of deploy/packages that this machine lacks. Fetches the
# package lists only if the local ones are too old.
install_packages() {
	command -v apt-get >/dev/null || die "this requires Debian 12 (apt-get not found)"
	missing=
	for package in $(listed_packages "$@"); do
		command -v "$package" >/dev/null && continue # the program is installed from another source
		case $(dpkg-query --show --showformat='${db:Status-Abbrev}' "$package" 2>/dev/null) in
		ii*) ;;
		*) missing="$missing $package" ;;
		esac
	done
	[ -n "$missing" ] || return 0
	echo "missing:$missing"
	# The tests start SSH servers in machines of their own; this machine must not get one unasked.
	case "$missing " in
	*' openssh-server '*)
		as_root mkdir -p /etc/systemd/system
		as_root ln -s /dev/null /etc/systemd/system/ssh.service || true
		;;
	esac
	# shellcheck disable=SC2086  # names of packages, one word each
	apt_install $missing || {
		as_root apt-get -q update
		apt_install $missing
	}
}

apt_install() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
		-o DPkg::Lock::Timeout=300 install --no-install-recommends "$@"
}

# listed_packages SECTION...: prints the names in these sections of deploy/packages.
listed_packages() {
	for section in "$@"; do
		sed -n -e 's/[[:space:]]*#.*//' -e "/^\[$section\]\$/,/^\[/{/^\[/d;/./p}" "$root/deploy/packages"
	done
}

# Puts a Go that go.mod accepts first in PATH: an installed one, or that of install_go.
use_go() {
	for directory in "" /usr/local/go/bin "$cache/go/bin"; do
		if go_is_new_enough "${directory:+$directory/}go"; then
			[ -z "$directory" ] || PATH=$directory:$PATH
			export PATH
			return 0
		fi
	done
	return 1
}

# use_image_tools: use_go for a script that builds an image. Names what is missing, and exits.
use_image_tools() {
	use_go || die "Go $(sed -n 's/^go //p' "$root/go.mod") or newer not found in PATH, /usr/local/go/bin or $cache/go/bin: install it from https://go.dev/dl"
	command -v docker >/dev/null || die "docker not found: install Docker's command, for instance the package docker.io"
}

go_is_new_enough() {
	found=$(GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null) || return 1
	wanted=$(sed -n 's/^go //p' "$root/go.mod")
	oldest=$(printf '%s\n%s\n' "$wanted" "${found#go}" | sort -V | head -n 1)
	[ "$oldest" = "$wanted" ]
}

# install_tool NAME FOLDER: installs the programs of a section of deploy/tools into a folder of their own. A file
# whose SHA-256 is not in deploy/tools is refused.
install_tool() {
	python3 -m venv --clear "$2" || return 1
	sed -n "/^# $1\$/,/^\$/p" "$root/deploy/tools" >"$2/requirements" || return 1
	"$2/bin/pip" --quiet install --require-hashes --no-deps --only-binary :all: -r "$2/requirements"
}

# tool_release PROGRAM: prints the version in deploy/tools.
tool_release() {
	sed -n "s/^$1==\([^ ]*\).*/\1/p" "$root/deploy/tools"
}

# Debian 12's Go is too old. The Python index has a newer one, which fetches the release of go.mod as a Go module and
# compares it with the checksum database.
install_go() {
	use_go && return 0
	wanted=$(sed -n 's/^go //p' "$root/go.mod")
	install_tool go "$cache/go-bootstrap" || return 1
	goroot=$(GOTOOLCHAIN=go$wanted "$cache/go-bootstrap/bin/go" env GOROOT) || return 1
	rm -rf "$cache/go"
	ln -s "$goroot" "$cache/go"
	use_go || die "Go $wanted is installed in $goroot but does not run"
}

# bazel_in_tree COMMAND ARGUMENTS...: runs bazel with a cache that outlives `bazel clean`.
bazel_in_tree() {
	bazel_command=$1
	shift
	(cd "$root" && bazel "$bazel_command" --color=no --curses=no --show_progress_rate_limit=20 \
		--disk_cache="$cache/bazel" "$@")
}

# The six programs.
programs='//cli:muster //services/aggregator:muster-aggregator //services/status:muster-status //services/relay:muster-relay //services/jobs:muster-jobs //gateway:muster-gateway'

# install_programs FOLDER BAZEL-FLAG...: builds the programs and copies them.
install_programs() {
	programs_folder=$1
	shift
	# shellcheck disable=SC2086  # labels, one word each
	bazel_in_tree build "$@" $programs || return 1
	output=$(bazel_in_tree info "$@" bazel-bin) || return 1
	mkdir -p "$programs_folder"
	for label in $programs; do
		file=${label#//}
		# Does not overwrite a running program: copies under another name, then renames.
		install -m 0755 "$output/$(echo "$file" | tr : /)" "$programs_folder/.${file##*:}.new"
		mv -f "$programs_folder/.${file##*:}.new" "$programs_folder/${file##*:}"
	done
}
