#!/bin/sh
# The limiter beside others for go-redis, on six redis-server processes that this
# script starts and stops. The usage text below says the rest.
#
# Two things about the figures:
#   - Servers and client share this machine's processors (the figures in README come
#     from two), and perhaps with others. Only ratios within one run mean something, and
#     those of a run on a busy machine little.
#   - The program is built, and not run by go run, so that the exit status is its own.
set -eu

usage() {
	cat <<'EOF'
usage: scripts/bench.sh [pause] [FLAG...]

  scripts/bench.sh                         all limiters and workloads, about 5 minutes
  scripts/bench.sh -quick                  the same in about a minute, and rougher
  scripts/bench.sh -plot bench.svg         with a picture
  scripts/bench.sh pause                   one primary hangs: what is left of the others
  scripts/bench.sh -h, ... pause -h        all flags; -addrs is given by this script

Variables: PORT, the first of six ports in a row (default 7501), and those of
scripts/cluster.sh.

Exit status: 0 this limiter counted right, 1 it did not, 2 nothing to judge.
EOF
}

root=$(cd "$(dirname "$0")/.." && pwd)
bin=$(mktemp -d)
started=
finish() {
	code=$?
	trap '' INT TERM
	trap - EXIT
	[ -z "$started" ] || "$root/scripts/cluster.sh" stop "$bin/cluster" >&2
	rm -rf "$bin"
	exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

(cd "$root/loadtest/compare" && go build -o "$bin/compare" .) || exit 2
for argument in "$@"; do
	case $argument in
	-h | -help | --help)
		usage
		echo
		"$bin/compare" "$@"
		exit
		;;
	esac
done

# The subcommand stays in front of the flags.
command=
if [ "${1-}" = pause ]; then
	command=pause
	shift
fi
export PORT="${PORT:-7501}"
started=1 # from here on there may be something to stop
"$root/scripts/cluster.sh" start "$bin/cluster" >&2 || exit 2
"$bin/compare" ${command:+"$command"} -addrs "127.0.0.1:$PORT" "$@"
