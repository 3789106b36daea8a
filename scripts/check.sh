#!/bin/sh
# check.sh: everything that must hold before a change lands, in the order in which
# it fails soonest.
#
#   scripts/check.sh
#
# Needs Go. What else it finds, it uses: redis-server in PATH (or REDIS_SERVER) for
# six processes; Docker with Compose and the image that REDIS_IMAGE names for six
# containers. What it does not find it skips, and says so; with
# SLOTLIMIT_NO_SKIP=1 a skip is a failure. OTHER_SERVERS names more servers, such as
# scripts/redis-suite.sh brings, which the tests run on as well. FUZZTIME is how
# long each fuzz target runs: 100000x, some seconds. A number of runs, not a time: at
# the end of a time, go test now and then takes its own deadline for a failure.
set -eu
cd "$(dirname "$0")/.."

step() { printf '\n== %s\n' "$*"; }
skip() {
	echo "skipped: $*"
	[ "${SLOTLIMIT_NO_SKIP:-}" != 1 ] || exit 1
}

step gofmt
unformatted=$(gofmt -l .)
[ -z "$unformatted" ] || { echo "gofmt would change: $unformatted"; exit 1; }

step go mod tidy
go mod tidy -diff

step go vet
go vet ./...

step staticcheck
go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...

step go test, with the race detector, in random order
go test -race -shuffle=on -timeout 20m ./...

step loadtest/compare, a module of its own
(
	cd loadtest/compare
	go mod tidy -diff
	go vet ./...
	go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
	go test -race -timeout 20m ./...
)

for server in ${OTHER_SERVERS:-}; do
	step "go test on $("$server" --version)"
	REDIS_SERVER=$server go test -timeout 20m ./cluster/... ./limiter/... ./loadtest
done

step fuzzing
for dir in $(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' ./...); do
	for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$dir"/*_test.go); do
		(cd "$dir" && go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-100000x}" .)
	done
done

bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
go build -o "$bin/loadtest" ./loadtest

step load test, in-process cluster
"$bin/loadtest"
"$bin/loadtest" boundary

step load test, six processes
if command -v "${REDIS_SERVER:-redis-server}" >/dev/null && command -v "${REDIS_CLI:-redis-cli}" >/dev/null; then
	export PORT=7101 # leaves the compose cluster's ports alone
	scripts/cluster.sh start "$bin/processes"
	trap 'scripts/cluster.sh stop "$bin/processes"; rm -rf "$bin"' EXIT
	"$bin/loadtest" -addrs 127.0.0.1:7101 -requests 100000 -users 1000
	scripts/cluster.sh stop "$bin/processes"
	trap 'rm -rf "$bin"' EXIT
	unset PORT
else
	skip "no redis-server and redis-cli in PATH"
fi

step load test, compose cluster
compose=
if docker compose version >/dev/null 2>&1; then
	compose="docker compose"
elif command -v docker-compose >/dev/null; then
	compose=docker-compose
fi
image=${REDIS_IMAGE:-redis:8}
if [ -z "$compose" ]; then
	skip "neither docker compose nor docker-compose"
elif ! docker image inspect "$image" >/dev/null 2>&1 && ! timeout 120 docker pull -q "$image" 2>/dev/null; then
	skip "no Docker engine, or no image $image and none to pull; scripts/redis-image.sh makes one, REDIS_IMAGE names it"
else
	# a cluster that was up before stays up
	[ -n "$(docker ps -q --filter name=slotlimit-redis-)" ] ||
		trap '$compose -f docker-compose.cluster.yml down -v; rm -rf "$bin"' EXIT
	$compose -f docker-compose.cluster.yml up -d
	"$bin/loadtest" -addrs 127.0.0.1:7001 -users 1000 -requests 300000 -workers 128 -limit 100/1m
fi

step all checks passed
