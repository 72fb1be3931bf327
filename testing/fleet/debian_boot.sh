#!/bin/sh
# Runs a machine with Debian: FOLDER ADDRESS PORT KEY DOCKER. Its files are those of this machine, as a layer that is never
# written, below a layer in memory. Its processes, mounts and control groups are its own, its network is ours. It has systemd,
# an SSH server at ADDRESS:PORT that admits root with the public key KEY, and nothing of ours. If DOCKER is `package`, Docker
# is not installed, but the only source of packages has it. debian.go starts the script as `prepare`, which starts it in
# new namespaces as `boot`.
set -eu

# Moves this process into control groups of its own, which the namespace shows to the machine as the roots.
prepare() {
	awk '$3 ~ /^cgroup2?$/ { print $2 }' /proc/self/mounts | sort -u | while read -r mount; do
		group=$mount/$(basename "$1")
		mkdir "$group" 2>/dev/null || continue # a file system that cannot be written: the machine does not need all
		for file in cpuset.cpus cpuset.mems; do # without them a group of version 1 admits no process
			if [ -f "$group/$file" ] && [ -z "$(cat "$group/$file")" ]; then
				cat "$mount/$file" >"$group/$file"
			fi
		done
		echo "$$" >"$group/cgroup.procs"
		echo "$group"
	done >"$1/groups"
	exec unshare --mount --pid --cgroup --uts --ipc --fork --kill-child "$0" boot "$@"
}

boot() {
	folder=$1
	root=$folder/root
	mkdir "$folder/layer" "$root"
	mount -t tmpfs -o mode=0755 machine "$folder/layer"
	mkdir "$folder/layer/upper" "$folder/layer/work"
	mount -t overlay -o "lowerdir=/,upperdir=$folder/layer/upper,workdir=$folder/layer/work" machine "$root"
	for memory in run tmp var/lib/docker var/lib/containerd; do
		mount -t tmpfs -o mode=1777 machine "$root/$memory" 2>/dev/null || {
			mkdir -p "$root/$memory"
			mount -t tmpfs -o mode=1777 machine "$root/$memory"
		}
	done
	mount_kernel
	clear_files
	mkdir -p "$root/var/lib/packages"
	: >"$root/var/lib/packages/Packages"
	echo 'deb [trusted=yes] file:/var/lib/packages ./' >"$root/etc/apt/sources.list"
	# The network is shared with this machine, so Docker may not change it.
	echo '{"bridge": "none", "iptables": false, "ip-forward": false}' >"$root/etc/docker/daemon.json"
	[ "$5" != package ] || package_docker
	units "$2" "$3"
	echo "$4" >"$root/key"
	install -D -m 600 "$root/key" "$root/root/.ssh/authorized_keys"
	hostname machine
	mkdir -p "$root/mnt/outside"
	cd "$root"
	pivot_root . mnt/outside
	exec chroot . /bin/sh -c 'umount -l /mnt/outside && exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd' <dev/null
}

# Mounts what the kernel provides.
mount_kernel() {
	mount -t proc proc "$root/proc"
	mount -t sysfs -o ro sysfs "$root/sys"
	if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
		mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
	else
		mount -t tmpfs -o mode=0755 machine "$root/sys/fs/cgroup"
		awk '$3 == "cgroup" { print $2, $4 }' /proc/self/mounts | while read -r mount options; do
			mkdir "$root/sys/fs/cgroup/$(basename "$mount")"
			mount -t cgroup -o "$(echo "$options" | sed 's/^rw,//; s/\(no\|rel\)[a-z]*time,//g; s/nosuid,//; s/nodev,//; s/noexec,//')" cgroup \
				"$root/sys/fs/cgroup/$(basename "$mount")"
		done
	fi
	mount -t tmpfs -o mode=0755 machine "$root/dev"
	mkdir "$root/dev/pts" "$root/dev/shm"
	mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts "$root/dev/pts"
	mount -t tmpfs -o mode=1777 machine "$root/dev/shm"
	for device in null zero full random urandom tty; do
		: >"$root/dev/$device"
		mount --bind "/dev/$device" "$root/dev/$device"
	done
	ln -s pts/ptmx "$root/dev/ptmx"
	ln -s /proc/self/fd "$root/dev/fd"
}

# Removes what this machine has of ours, its services and its sources of packages.
clear_files() {
	cd "$root"
	rm -rf var/lib/muster* usr/local/bin/muster etc/default/muster-agent usr/share/doc/muster usr/sbin/policy-rc.d
	rm -rf etc/systemd/system usr/lib/systemd/system/*.wants etc/apt/sources.list etc/apt/sources.list.d etc/apt/apt.conf.d/docker* etc/docker
	rm -rf etc/fstab root/.ssh etc/ssh/sshd_config.d etc/ssh/ssh_host_*
	mkdir -p etc/systemd/system etc/apt/sources.list.d etc/docker
	sed -i 's/^root:[^:]*:/root:*:/' etc/shadow # a locked account may not log in
}

# Makes a package of the installed docker.io, and removes that.
package_docker() {
	# shellcheck disable=SC2016  # the inner shell expands it
	chroot "$root" env -i PATH="$PATH" DEBIAN_FRONTEND=noninteractive /bin/sh -ec '
		cd /var/lib/packages
		dpkg-repack --deb-option=-Znone docker.io
		dpkg --remove docker.io
		for package in *.deb; do
			dpkg-deb -f "$package"
			printf "Filename: ./%s\nSize: %s\nSHA256: %s\n\n" "$package" "$(stat -c %s "$package")" "$(sha256sum <"$package" | cut -c -64)"
		done >Packages'
}

# Writes what systemd starts: an SSH server.
units() {
	ssh-keygen -q -t ed25519 -N '' -f "$root/etc/ssh/ssh_host_ed25519_key"
	cat >"$root/etc/systemd/system/machine-ssh.service" <<-END
		[Service]
		RuntimeDirectory=sshd
		ExecStart=/usr/sbin/sshd -D -e -f /dev/null -o ListenAddress=$1 -o Port=$2 -o HostKey=/etc/ssh/ssh_host_ed25519_key -o UsePAM=no -o StrictModes=no -o Subsystem=sftp\x20internal-sftp
	END
	cat >"$root/etc/systemd/system/default.target" <<-'END'
		[Unit]
		Requires=systemd-journald.service machine-ssh.service
	END
}

command=$1
shift
"$command" "$@"
