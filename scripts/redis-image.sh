#!/bin/sh
# A Docker image with a Redis server, made on this machine: for a machine whose
# Docker engine cannot pull the official one. The usage text below says the rest.
#
# The image does what docker-compose.cluster.yml and the tests ask of the official
# one: redis-server and redis-cli in PATH, a shell with the usual small tools
# (busybox), port 6379, folder /data, protected mode off, and an entrypoint named
# docker-entrypoint.sh. It differs in running as root and in declaring no volume.
set -eu

usage() {
	cat <<'EOF'
usage: scripts/redis-image.sh [TAG [DIR]]

Makes the image TAG (default redis-local:7) of the server in Debian's package
redis-tools or, with DIR, of the one that scripts/redis-suite.sh put there.
Packages that are missing (redis-tools, busybox-static) are installed, which needs
root. Neither of them holds a service: no server is started on this machine.

  scripts/redis-image.sh
  REDIS_IMAGE=redis-local:7 docker compose -f docker-compose.cluster.yml up -d

Exit status: 0 done, 1 failed, 2 wrong usage.
EOF
}

die() {
	echo "redis-image.sh: $*" >&2
	exit 1
}

wrong() {
	echo "redis-image.sh: $*" >&2
	usage >&2
	exit 2
}

# install PACKAGE...: the machine's package lists are fetched only if they do not do.
install() {
	command -v apt-get >/dev/null || die "install these first: $*"
	[ "$(id -u)" = 0 ] || die "install these first, as root: apt-get install $*"
	quietly apt-get install "$@" || { quietly apt-get update && quietly apt-get install "$@"; } || {
		tail -n 5 "$work/out" >&2
		die "apt-get cannot install $*"
	}
}

quietly() {
	tool=$1 verb=$2
	shift 2
	[ "$verb" = update ] || set -- --yes --no-install-recommends "$@"
	DEBIAN_FRONTEND=noninteractive "$tool" -qq "$verb" "$@" >"$work/out" 2>&1
}

# static: whether the busybox here needs no library. Only such a one runs in the image.
static() {
	[ -x "$(command -v busybox)" ] && ! ldd "$(command -v busybox)" >/dev/null 2>&1
}

# needs PROGRAM...: the files that the programs load, the loader with them.
needs() {
	for program; do
		if [ -z "$from" ]; then
			ldd "$program"
		else
			"$loader" --library-path "$(dirname "$(find "$from/root" -name libc.so.6 | head -n 1)")" --list "$program"
		fi
	done | tr '[:space:]' '\n' | grep '^/' | sort -u
}

case ${1-} in -h | --help) usage && exit ;; esac
[ $# -le 2 ] || wrong "too many arguments"
tag=${1-redis-local:7} from=${2-}
case $tag in '' | -*) wrong "not a tag: $tag" ;; esac
if [ $# -eq 2 ]; then
	if [ ! -d "$2/root" ] || [ ! -x "$2/bin/redis-server" ]; then wrong "not a folder that redis-suite.sh filled: $2"; fi
	from=$(cd "$2" && pwd -P)
	loader=$(find "$from/root" -type f -name 'ld-linux*.so.*' | head -n 1)
fi
command -v docker >/dev/null || die "no docker in PATH"
docker version >/dev/null 2>&1 || die "no Docker engine answers; is it started, and are you allowed to use it?"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

missing=
static || missing=busybox-static
if [ -z "$from" ]; then
	[ -x /usr/bin/redis-check-rdb ] && [ -x /usr/bin/redis-cli ] || missing="$missing redis-tools"
fi
# shellcheck disable=SC2086 # a list of packages
[ -z "$missing" ] || install $missing
static || die "the busybox in PATH is not a static one"

# Debian's server is its checker of RDB files by another name; the package named
# redis-server would also start a service.
if [ -z "$from" ]; then
	server=/usr/bin/redis-check-rdb client=/usr/bin/redis-cli
else
	server=$(echo "$from"/root/usr/bin/*-check-rdb) client=$(echo "$from"/root/usr/bin/*-cli)
fi

image=$work/image
mkdir -p "$image/bin" "$image/lib" "$image/lib64" "$image/usr/bin" "$image/usr/local/bin" "$image/data" \
	"$image/etc" "$image/root" "$image/tmp" "$image/dev" "$image/proc" "$image/sys"
chmod 1777 "$image/tmp"
cp -L "$(command -v busybox)" "$image/bin/busybox"
for name in $(busybox --list); do
	[ -e "$image/bin/$name" ] || ln -s busybox "$image/bin/$name"
done
cp -L "$server" "$image/usr/local/bin/redis-server"
cp -L "$client" "$image/usr/local/bin/redis-cli"
needs "$server" "$client" >"$work/needs"
while read -r file; do
	to=$image${file#"$from/root"}
	mkdir -p "${to%/*}"
	cp -L "$file" "$to"
done <"$work/needs"
# Programs ask for the loader in /lib64 or /lib, by processor; only the loader of
# the same build fits the C library beside it.
[ -z "$from" ] || for place in lib lib64; do
	cp -L "$loader" "$image/$place/"
done
printf '%s\n' root:x:0:0:root:/root:/bin/sh redis:x:999:999:redis:/data:/bin/sh >"$image/etc/passwd"
printf '%s\n' root:x:0: redis:x:999: >"$image/etc/group"

cat >"$image/usr/local/bin/docker-entrypoint.sh" <<'EOF'
#!/bin/sh
# docker run IMAGE [OPTION... | FILE.conf [OPTION...] | COMMAND...]: options and
# a configuration file are redis-server's, as with the official image.
set -eu
case ${1-} in
-* | *.conf) set -- redis-server "$@" ;;
esac
# The official server is built with protected mode off, Debian's with it on: it
# would refuse every client that comes through a published port. The option goes
# before the caller's own, which overrule it, but after a file, which must be first.
if [ "${1-}" = redis-server ]; then
	shift
	case ${1-} in
	-v | --version | -h | --help | --test-memory | --check-system) set -- redis-server "$@" ;;
	*.conf)
		file=$1
		shift
		set -- redis-server "$file" --protected-mode no "$@"
		;;
	*) set -- redis-server --protected-mode no "$@" ;;
	esac
fi
exec "$@"
EOF
chmod 755 "$image/usr/local/bin/docker-entrypoint.sh"

tar -C "$image" --numeric-owner --owner=0 --group=0 -cf - . | docker import \
	--change 'ENV PATH=/usr/local/bin:/usr/bin:/bin' --change 'WORKDIR /data' --change 'EXPOSE 6379' \
	--change 'ENTRYPOINT ["docker-entrypoint.sh"]' --change 'CMD ["redis-server"]' \
	- "$tag" >/dev/null
# the proof that it is whole: every library is found inside
said=$(docker run --rm --network none "$tag" redis-server --version) || die "the image $tag does not run"
echo "$tag: $said"
