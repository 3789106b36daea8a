#!/bin/sh
# A newer Redis or Valkey than this Debian has, in a folder of its own, for tests
# against several servers. The usage text below says the rest.
#
# apt-get is given lists, cache and package status of its own, all in a temporary
# folder: it believes to be on an empty machine, fetches the package with everything
# it needs down to the C library, and installs nothing here.
set -eu

usage() {
	cat <<'EOF'
usage: scripts/redis-suite.sh SUITE PACKAGE DIR

Takes PACKAGE (redis-tools or valkey-tools) from the Debian suite SUITE and makes
DIR/bin/redis-server and DIR/bin/redis-cli. They bring their own libraries, so they
run on this machine whatever it has installed. DIR must be new or empty.

  scripts/redis-suite.sh experimental redis-tools  /tmp/redis     Redis, the newest
  scripts/redis-suite.sh sid          valkey-tools /tmp/valkey    Valkey, the newest

Use them by REDIS_SERVER=DIR/bin/redis-server scripts/cluster.sh start, or make an
image of them: scripts/redis-image.sh TAG DIR.

Variable: MIRROR, a Debian mirror's address up to and with /debian; the default is
the mirror that this machine's own apt-get uses.

Exit status: 0 done, 1 failed, 2 wrong usage.
EOF
}

die() {
	echo "redis-suite.sh: $*" >&2
	exit 1
}

wrong() {
	echo "redis-suite.sh: $*" >&2
	usage >&2
	exit 2
}

case ${1-} in -h | --help) usage && exit ;; esac
[ $# -eq 3 ] || wrong "three arguments are needed"
suite=$1 package=$2 dir=$3
case $suite in '' | *[!a-z0-9-]*) wrong "not a suite: $suite" ;; esac
case $package in redis-tools | valkey-tools) ;; *) wrong "not redis-tools or valkey-tools: $package" ;; esac
[ -n "$dir" ] || wrong "DIR is empty"
[ ! -d "$dir" ] || [ -z "$(ls -A "$dir")" ] || die "$dir is not empty"
for tool in apt-get dpkg-deb; do
	command -v "$tool" >/dev/null || die "this needs a Debian machine: no $tool in PATH"
done

keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$keyring" ] || die "$keyring is missing: apt-get install debian-archive-keyring"
mirror=${MIRROR:-$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
	sed 's/#.*//' | tr '[:space:]' '\n' | grep -E '^https?://.*/debian/?$' | head -n 1)} || :
[ -n "$mirror" ] || die "apt-get's sources here name no Debian mirror; name one: MIRROR=ADDRESS"

made=
[ -d "$dir" ] || made=1
work=$(mktemp -d)
finish() {
	code=$?
	rm -rf "$work"
	if [ "$code" -ne 0 ]; then # leave no half-filled folder
		rm -rf "${dir:?}/root" "${dir:?}/bin"
		[ -z "$made" ] || rmdir "$dir" 2>/dev/null || :
	fi
	exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$dir/root" "$dir/bin"
dir=$(cd "$dir" && pwd -P)
: >"$work/status"
echo "deb [signed-by=$keyring] $mirror $suite main" >"$work/sources.list"
# experimental holds only what differs from sid
[ "$suite" != experimental ] || echo "deb [signed-by=$keyring] $mirror sid main" >>"$work/sources.list"

apart() {
	apt-get -qq \
		-o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=- \
		-o Dir::State::Lists="$work/lists" -o Dir::State::Status="$work/status" \
		-o Dir::Cache="$work/cache" -o APT::Sandbox::User="$(id -un)" "$@" >"$work/out" 2>&1 || {
		tail -n 5 "$work/out" >&2
		die "apt-get $1 fails for $suite $package"
	}
}
apart update
apart install --yes --no-install-recommends --download-only --target-release "$suite" "$package"
for deb in "$work"/cache/archives/*.deb; do
	dpkg-deb --fsys-tarfile "$deb" | tar -C "$dir/root" -xf -
done

# A program finds its loader at a fixed path, which on this machine is another
# C library's; so the loader that came along is called, and told where its libraries are.
loader=$(find "$dir/root" -type f -name 'ld-linux*.so.*' | head -n 1)
[ -n "$loader" ] || die "no loader came with $package"
libraries=$(dirname "$(find "$dir/root" -name 'libc.so.6' | head -n 1)")
wrap() { # wrap NAME PROGRAM
	[ -x "$2" ] || die "$package of $suite holds no ${2##*/}"
	cat >"$dir/bin/$1" <<-EOF
		#!/bin/sh
		exec "$loader" --argv0 $1 --library-path "$libraries" "$2" "\$@"
	EOF
	chmod 755 "$dir/bin/$1"
}
# the tools' package holds the server too: it is the checker of RDB files by another name
wrap redis-server "$dir/root/usr/bin/${package%-tools}-check-rdb"
wrap redis-cli "$dir/root/usr/bin/${package%-tools}-cli"
"$dir/bin/redis-server" --version
