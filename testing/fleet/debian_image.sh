#!/bin/sh
# Writes FOLDER/image.tar: packages that this machine has, their dependencies and the essential packages, without their
# pages: FOLDER PACKAGE...
set -eu
folder=$1
shift

packages() {
	apt-cache depends --recurse --installed --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces \
		--no-enhances "$@" | grep '^[a-z]'
	dpkg-query --show --showformat='${Essential} ${Package}\n' | sed -n 's/^yes //p'
}

# The folders of Debian 12 that are links.
mkdir -p "$folder/links/tmp"
chmod 1777 "$folder/links/tmp"
ln -s usr/bin usr/sbin usr/lib usr/lib64 "$folder/links"

{
	packages "$@" | sort -u | xargs dpkg-query --listfiles
	find /etc/alternatives -type l
} | sed -nE '/^\/(bin|sbin|lib|lib64)$/d; s#^/(bin|sbin|lib|lib64)/#/usr/\1/#; /^\/usr\/share\/(doc|man|locale|info)/d; s#^/##p' | sort -u |
	while read -r file; do
		if [ -e "/$file" ] && { [ -L "/$file" ] || ! [ -d "/$file" ]; }; then
			echo "$file"
		fi
	done >"$folder/list"
tar -c -f "$folder/image.tar" --no-recursion -C "$folder/links" bin sbin lib lib64 tmp -C / etc/passwd etc/group etc/ld.so.cache -T "$folder/list"
