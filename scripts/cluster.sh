#!/bin/sh
# A Redis Cluster of six redis-server processes on this machine, without Docker:
# three primaries with a replica each. The usage text below says the rest.
#
# Why the pieces are as they are:
#   - Each server runs from a configuration file in the folder, and its process
#     title shows that file. A pid is believed to be ours only while it does, so
#     a pid file that outlived its process never gets a stranger killed.
#   - The servers become daemons with sessions of their own: an interrupt typed
#     at a load test in the same script does not reach them.
#   - nodes.conf stays in the folder while the cluster lives, so a node that died
#     comes back as the member that it was.
set -eu

usage() {
	cat <<'EOF'
usage: scripts/cluster.sh start|stop|status [DIR]

  start   Start six servers and make them one cluster. Returns when all six
          agree and every replica is in step with its primary. On a cluster that
          runs already it starts the nodes that are missing and changes no other.
  stop    Stop the servers that start started and delete their files.
  status  Show every node's process, role and hash slots. Exit status 0 only if
          the cluster is whole.

  DIR     Where the cluster keeps its files. Without it: slotlimit-cluster-PORT
          in ${TMPDIR:-/tmp}.

Variables:
  PORT          the first of six ports in a row on 127.0.0.1 (default 7001); each
                node also takes its port + 10000, to talk with its peers
  REDIS_SERVER  the server (default redis-server, else valkey-server, in PATH);
                Redis 7.0 or later, Valkey 8 or later. Debian's redis-check-rdb
                is the server under another name, and serves as one here.
  REDIS_CLI     the client (default redis-cli, else valkey-cli, in PATH)

Nothing is written to disk but the cluster's own bookkeeping. So a primary that is
killed and started again before its replica has taken over (2 to 5 s) comes back
empty, and its replica copies that.

Exit status: 0 done, 1 failed or not whole, 2 wrong usage.
EOF
}

die() {
	echo "cluster.sh: $*" >&2
	exit 1
}

wrong() {
	echo "cluster.sh: $*" >&2
	usage >&2
	exit 2
}

# cli PORT ARG...: one command to one node. A node that hangs must not hang this
# script; where there is no timeout command (macOS) it may.
cli() {
	cli_port=$1
	shift
	$limit "$client" -h 127.0.0.1 -p "$cli_port" "$@" 2>/dev/null | tr -d '\r'
}

# running PORT: prints the pid of the node's server if that is still a process of ours.
running() {
	[ -s "$dir/$1/pid" ] || return 1
	read -r pid <"$dir/$1/pid" || return 1
	case $pid in '' | *[!0-9]*) return 1 ;; esac
	if [ -d /proc/self ]; then
		[ -r "/proc/$pid/cmdline" ] && title=$(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline") || return 1
	else
		title=$(ps -ww -o args= -p "$pid" 2>/dev/null) || return 1
	fi
	case $title in *"$dir/$1/redis.conf"*) echo "$pid" ;; *) return 1 ;; esac
}

# halt PORT: ends the node's server, gently for 5 s, then by force. The identity
# is asked anew before each signal, since a pid can change hands meanwhile.
halt() {
	pid=$(running "$1") || return 0
	kill "$pid" 2>/dev/null || :
	tries=0
	while pid=$(running "$1"); do
		tries=$((tries + 1))
		[ "$tries" -ne 50 ] || kill -9 "$pid" 2>/dev/null || :
		[ "$tries" -lt 100 ] || die "process $pid (port $1) does not end"
		sleep 0.1
	done
}

# forget: deletes the files that this script makes, and no others.
forget() {
	for p in $ports; do
		rm -f "$dir/$p/redis.conf" "$dir/$p/nodes.conf" "$dir/$p/pid" "$dir/$p/log" "$dir/$p/log.before" \
			"$dir/$p/dump.rdb" "$dir/$p"/temp-*.rdb
		[ ! -d "$dir/$p" ] || rmdir "$dir/$p" 2>/dev/null || :
	done
	rm -f "$dir/port" "$dir/redis-server"
}

# own: one start or stop at a time for a folder.
own() {
	until mkdir "$dir/lock" 2>/dev/null; do
		holder=$(cat "$dir/lock/pid" 2>/dev/null) || holder=
		# between mkdir and the pid inside there is a moment
		[ -n "$holder" ] || { sleep 1 && holder=$(cat "$dir/lock/pid" 2>/dev/null) || holder=none; }
		! kill -0 "$holder" 2>/dev/null || die "another cluster.sh (pid $holder) is at work in $dir"
		rm -rf "$dir/lock"
	done
	echo $$ >"$dir/lock/pid"
}

find_client() {
	client=${REDIS_CLI:-$(command -v redis-cli || command -v valkey-cli || :)}
	[ -n "$client" ] || die "no redis-cli in PATH. Install it (Debian, Ubuntu: apt-get install redis-tools; macOS: brew install redis) or name one: REDIS_CLI=/path/to/redis-cli"
	command -v "$client" >/dev/null || die "REDIS_CLI: $client cannot be run"
}

find_server() {
	server=${REDIS_SERVER:-$(command -v redis-server || command -v valkey-server || :)}
	if [ -z "$server" ]; then
		hint=/path/to/redis-server
		! command -v redis-check-rdb >/dev/null || hint=$(command -v redis-check-rdb)
		die "no redis-server in PATH. Install it (Debian, Ubuntu: apt-get install redis-server; macOS: brew install redis) or name one: REDIS_SERVER=$hint"
	fi
	path=$(command -v "$server") || die "REDIS_SERVER: $server cannot be run"
	case $path in /*) ;; *) path=$(cd "$(dirname "$path")" && pwd)/$(basename "$path") ;; esac
	server=$path
	case ${server##*/} in *-check-rdb)
		# it checks files or serves, by the name it is called by
		ln -sf "$server" "$dir/redis-server"
		server=$dir/redis-server
		;;
	esac
	version=$("$server" --version 2>&1 | head -n 1)
	case $version in
	*" v="[1-6].*) die "$server is too old, 7.0 is needed: $version" ;;
	*" v="[0-9]*) ;;
	*) die "$server is no Redis or Valkey server: $version" ;;
	esac
}

# launch PORT: starts one server; it may still fail to take its port.
launch() {
	mkdir -p "$dir/$1"
	rm -f "$dir/$1/pid"
	[ ! -f "$dir/$1/log" ] || mv -f "$dir/$1/log" "$dir/$1/log.before"
	cat >"$dir/$1/redis.conf" <<-EOF
		bind 127.0.0.1
		port $1
		daemonize yes
		dir "$dir/$1"
		pidfile "$dir/$1/pid"
		logfile "$dir/$1/log"
		# the file first: it is how running knows its own, and a title may be cut short
		proc-title-template "{title} {config-file} {listen-addr}"
		save ""
		appendonly no
		# a replica keeps the copy it was sent as dump.rdb otherwise, and would serve
		# those old counts after it was promoted and restarted
		rdb-del-sync-files yes
		# do not wait for replicas that are being stopped too
		shutdown-timeout 0
		# copy at once, and count as copied a second later, instead of 5 and 10 s
		repl-diskless-sync-delay 0
		repl-ping-replica-period 1
		cluster-enabled yes
		cluster-config-file nodes.conf
		cluster-node-timeout 2000
		cluster-require-full-coverage no
	EOF
	"$server" "$dir/$1/redis.conf" >>"$dir/$1/log" 2>&1 || refuse "$1" "the server of port $1 did not start"
}

# await PORT: returns when the server that was launched is the one that answers on its port.
await() {
	tries=0
	until pid=$(running "$1") && [ "$(cli "$1" info server | sed -n 's/^process_id://p')" = "$pid" ]; do
		tries=$((tries + 1))
		if grep -q 'Failed listening' "$dir/$1/log" 2>/dev/null; then
			refuse "$1" "port $1 or $(($1 + 10000)) is taken by another program; free it or choose others: PORT=7101 scripts/cluster.sh start"
		fi
		[ "$tries" -lt 150 ] || refuse "$1" "the server of port $1 does not answer"
		sleep 0.1
	done
}

# refuse PORT REASON: the reason, and the server's own last words.
refuse() {
	[ ! -s "$dir/$1/log" ] || tail -n 5 "$dir/$1/log" >&2
	die "$2"
}

# form: makes one cluster of six nodes that may know nothing of each other. Each
# step does no harm where it was done before, so it also completes a half-made cluster.
form() {
	i=0
	for p in $ports; do
		if [ "$i" -lt 3 ]; then
			# epochs of their own from the start: equal ones would have to be sorted out by gossip
			cli "$p" cluster set-config-epoch $((i + 1)) >/dev/null || :
			cli "$p" cluster addslotsrange $((i * 16384 / 3)) $(((i + 1) * 16384 / 3 - 1)) >/dev/null || :
		fi
		for q in $ports; do
			[ "$q" -lt "$p" ] || break
			cli "$p" cluster meet 127.0.0.1 "$q" >/dev/null
		done
		i=$((i + 1))
	done
	for i in 0 1 2; do
		primary=$(cli $((first + i)) cluster myid)
		tries=0
		# refused until word of the primary has reached the node
		until said=$(cli $((first + 3 + i)) cluster replicate "$primary") && [ "$said" = OK ]; do
			tries=$((tries + 1))
			[ "$tries" -lt 150 ] || die "port $((first + 3 + i)) does not become a replica: $said"
			sleep 0.1
		done
	done
}

# formed: whether any node knows an owner for every hash slot.
formed() {
	for p in $ports; do
		if cli "$p" cluster info | grep -q '^cluster_slots_assigned:16384$'; then return 0; fi
	done
	return 1
}

# digest PORT: the cluster as this node sees it, a line per node with id, role, primary
# and slots; and what is amiss with it, in lines that begin with a "!".
digest() {
	printf '%s\n' 'cluster info' 'info replication' 'cluster slots' 'cluster nodes' | cli "$1" | awk '
		/^cluster_state:/ { answers = 1 }
		/^cluster_state:/ && !/:ok/ { print "! says that the cluster is down" }
		/^master_link_status:down/ { print "! is not in step with its primary" }
		length($1) != 40 || $1 !~ /^[0-9a-f]+$/ { next } # what follows has a node id first
		NF == 1 { if (!($1 in told)) n++; told[$1] } # a replica is left out until it has copied something
		NF >= 8 {
			role = $3 ~ /slave/ ? "replica" : "primary"
			if ($3 ~ /fail|handshake|noaddr/ || $8 != "connected") { sub(/@.*/, "", $2); print "! misses " $2 }
			slots = ""
			for (i = 9; i <= NF; i++) if ($i !~ /^\[/) slots = slots " " $i
			print $1, role, $4 slots
		}
		END {
			if (!answers) print "! does not answer"
			else if (n != 6) print "! tells clients of " n + 0 " nodes, not of six"
		}' | sort
}

# flaws: a line for each reason why the cluster is not whole; nothing if it is.
flaws() {
	model=
	for p in $ports; do
		if ! running "$p" >/dev/null; then
			echo "port $p: no server of ours runs"
			continue
		fi
		seen=$(digest "$p")
		echo "$seen" | sed -n "s/^!/port $p:/p"
		seen=$(echo "$seen" | grep -v '^!') || continue
		[ -n "$model" ] || model_port=$p model=$seen
		[ "$seen" = "$model" ] || echo "port $p: disagrees with port $model_port about nodes or slots"
	done
	[ "$(echo "$model" | awk '$2 == "replica" { print $3 }' | sort -u | wc -l)" -eq 3 ] ||
		echo "there are not three primaries with a replica each"
}

start() {
	# a folder in a shared /tmp could have been put there by somebody else
	[ -n "$(find "$dir" -prune -user "$(id -u)")" ] || die "$dir belongs to another user; name another DIR"
	launched='' fresh='' whole='' owned=''
	trap undo EXIT
	own
	owned=1
	[ -f "$dir/port" ] || fresh=1
	find_server
	echo "$first" >"$dir/port"
	for p in $ports; do
		if ! running "$p" >/dev/null; then
			launched="$launched $p"
			launch "$p"
		fi
	done
	for p in $launched; do await "$p"; done
	[ -z "$launched" ] || formed || form
	tries=0
	until lacks=$(flaws) && [ -z "$lacks" ]; do
		tries=$((tries + 1))
		[ "$tries" -lt 60 ] || die "the cluster does not become whole:
$lacks"
		sleep 0.2
	done
	whole=1
	if [ -z "$launched" ]; then
		echo "runs already: 127.0.0.1:$first to 127.0.0.1:$last, files in $dir"
	else
		echo "ready: 127.0.0.1:$first to 127.0.0.1:$last (${version%% sha=*}), files in $dir"
	fi
}

# undo: at the end of a start. One that failed, or was interrupted, takes back what
# it began; nodes that ran before stay, and so do the files of a cluster that was there.
undo() {
	code=$?
	trap '' INT TERM HUP
	trap - EXIT
	if [ -z "$whole" ] && [ -n "$owned" ]; then
		for p in $launched; do
			tries=0 # a server that was just launched has no pid file yet
			while [ -f "$dir/$p/log" ] && [ ! -s "$dir/$p/pid" ] && [ "$tries" -lt 50 ]; do
				! grep -q 'Failed listening' "$dir/$p/log" || break
				tries=$((tries + 1))
				sleep 0.1
			done
			halt "$p"
		done
		[ -z "$fresh" ] || forget
	fi
	[ -z "$owned" ] || rm -rf "$dir/lock"
	# only an empty folder goes
	[ -n "$whole" ] || rmdir "$dir" 2>/dev/null || :
	exit "$code"
}

stop() {
	if [ ! -f "$dir/port" ]; then
		echo "nothing to stop: no cluster in $dir"
		return
	fi
	own
	trap 'rm -rf "$dir/lock"' EXIT
	count=0
	for p in $ports; do
		if running "$p" >/dev/null; then
			halt "$p"
			count=$((count + 1))
		fi
	done
	forget
	rm -rf "$dir/lock"
	rmdir "$dir" 2>/dev/null || :
	echo "stopped $count servers"
}

status() {
	[ -f "$dir/port" ] || die "no cluster in $dir; begin one: scripts/cluster.sh start"
	row='%-16s %-8s %-8s %s\n'
	# shellcheck disable=SC2059 # the format is the one above
	printf "$row" NODE PID ROLE SLOTS
	for p in $ports; do
		pid=$(running "$p") || pid=-
		role=- slots=-
		if [ "$pid" != - ]; then
			nodes=$(cli "$p" cluster nodes)
			mine=$(echo "$nodes" | awk '$3 ~ /myself/')
			case $mine in
			*slave*)
				role=replica
				above=$(echo "$mine" | cut -d' ' -f4)
				slots="of $(echo "$nodes" | awk -v id="$above" '$1 == id { sub(/@.*/, "", $2); print $2 }')"
				;;
			*master*)
				role=primary
				slots=$(echo "$mine" | cut -d' ' -f9-)
				;;
			*) slots='does not answer' ;;
			esac
		fi
		# shellcheck disable=SC2059
		printf "$row" "127.0.0.1:$p" "$pid" "$role" "${slots:-none}"
	done
	lacks=$(flaws)
	[ -z "$lacks" ] || die "not whole:
$lacks"
	echo "whole: every node agrees, every replica is in step"
}

case ${1-} in -h | --help) usage && exit ;; esac
[ $# -ge 1 ] || wrong "say what to do"
[ $# -le 2 ] || wrong "too many arguments"
[ "${2-.}" ] || wrong "DIR is empty"
case $1 in start | stop | status) ;; *) wrong "unknown command: $1" ;; esac

[ "$1" = stop ] || find_client
first=${PORT:-7001}
case $first in *[!0-9]* | ??????*) wrong "PORT is not a number: $first" ;; esac
if [ "$first" -lt 1024 ] || [ "$first" -gt 55530 ]; then wrong "PORT must be 1024 to 55530: $first"; fi
dir=${2:-${TMPDIR:-/tmp}/slotlimit-cluster-$first}
case $dir in *[\"\\]* | *'
'*) wrong "DIR must hold no quote, backslash or line end" ;; esac
# one spelling of the folder, whatever the caller's: it is part of the processes' titles
case $dir in -*) dir=./$dir ;; esac
if [ -d "$dir" ]; then
	dir=$(cd "$dir" && pwd -P)
elif [ "$1" = start ]; then
	dir=$(umask 077 && mkdir -p "$dir" && cd "$dir" && pwd -P) || die "cannot make the folder $dir"
fi
if [ -f "$dir/port" ]; then
	kept=$(cat "$dir/port")
	[ "$1" != start ] || [ "${PORT:-$kept}" = "$kept" ] || die "$dir holds the cluster of port $kept; stop it first or name another DIR"
	first=$kept
fi
last=$((first + 5))
ports="$first $((first + 1)) $((first + 2)) $((first + 3)) $((first + 4)) $last"
limit=
! command -v timeout >/dev/null || limit='timeout 3'
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
"$1"
