#!/bin/bash
# cluster.sh: several "nodes" on one machine, as network namespaces joined by a switch, for runs of Open MPI.
#
#   cluster.sh check               exit 0 if this machine can do it, else say why not and exit 77
#   cluster.sh up N                create N nodes
#   cluster.sh shape RATE          limit every link, both ways: 1gbit, 200mbit, ...; none removes the limit
#   cluster.sh run SLOTS NP ARGS   mpirun from node 0, NP ranks, SLOTS on each node; ARGS: mpirun's options, program
#   cluster.sh down                remove everything, ending what still runs on the nodes
#
# Each node has its own network, host name and /dev/shm, so MPI sees different hosts; files and processors are
# shared. HCP_CLUSTER (default "hcp") names the cluster; clusters of different names do not meet.
# Stay at or below 1gbit to have the link limit a transfer and not the processor.
set -euo pipefail

self=$(readlink -f "$0")
name=${HCP_CLUSTER:-hcp}
switch=$name-switch
state=/run/hcp-cluster-$name
subnet=10.77.0
mtu=9000

fail() { echo "cluster.sh: $*" >&2; exit 1; }
node() { echo "$name-node$1"; }
nodes_up() { cat "$state/nodes" 2> /dev/null || fail "no cluster \"$name\" is up"; }

reason_against() {
  local tool
  [ "$(id -u)" -eq 0 ] || { echo "network namespaces need root"; return; }
  for tool in ip tc unshare mpirun; do
    command -v "$tool" > /dev/null || { echo "$tool is not installed"; return; }
  done
  unshare --net --uts --ipc --mount true 2> /dev/null || { echo "this machine does not allow namespaces"; return; }
  unshare --net sh -c 'ip link add veth0 type veth peer name veth1 && ip link add bridge0 type bridge &&
    tc qdisc add dev veth0 root tbf rate 1gbit burst 128kb limit 32mb' 2> /dev/null ||
    echo "this kernel lacks veth, bridge or tbf"
}

check() {
  local reason
  reason=$(reason_against)
  [ -z "$reason" ] || { echo "skipped: $reason"; exit 77; }
}

add_node() { # number: its namespace, its cable to the switch, its address
  local ns
  ns=$(node "$1")
  ip netns add "$ns"
  ip netns exec "$ns" sysctl -qw net.ipv4.tcp_congestion_control=reno  # bbr paces itself below the shaped rate
  ip -n "$ns" link set lo up
  ip link add "port$1" netns "$switch" type veth peer name eth0 netns "$ns"
  ip -n "$switch" link set "port$1" mtu "$mtu" master bridge up
  ip -n "$ns" link set eth0 mtu "$mtu" up
  ip -n "$ns" address add "$subnet.$(($1 + 1))/24" dev eth0
}

write_hosts_files() { # count: names are resolved by /etc/netns/NODE/hosts, which ip netns exec puts over /etc/hosts
  local i hosts="127.0.0.1 localhost"
  for ((i = 0; i < $1; i++)); do hosts+=$'\n'"$subnet.$((i + 1)) $(node "$i")"; done
  for ((i = 0; i < $1; i++)); do
    mkdir -p "/etc/netns/$(node "$i")"
    echo "$hosts" > "/etc/netns/$(node "$i")/hosts"
  done
}

up() { # count
  local reason i
  [[ $1 =~ ^[0-9]+$ && $1 -ge 1 && $1 -le 250 ]] || fail "up needs a number of nodes from 1 to 250, not \"$1\""
  reason=$(reason_against)
  [ -z "$reason" ] || fail "$reason"
  mkdir "$state" 2> /dev/null || fail "cluster \"$name\" is up already (or was left behind: cluster.sh down)"
  trap down EXIT
  ip netns add "$switch"
  ip -n "$switch" link add bridge type bridge
  ip -n "$switch" link set bridge mtu "$mtu" up
  write_hosts_files "$1"
  for ((i = 0; i < $1; i++)); do add_node "$i"; done
  echo "$1" > "$state/nodes"
  trap - EXIT
}

shape_end() { # namespace, device, rate
  tc -n "$1" qdisc delete dev "$2" root 2> /dev/null || true
  [ "$3" = none ] || tc -n "$1" qdisc add dev "$2" root tbf rate "$3" burst 128kb limit 32mb
}

shape() { # rate
  local i count
  count=$(nodes_up)
  for ((i = 0; i < count; i++)); do
    shape_end "$(node "$i")" eth0 "$1"
    shape_end "$switch" "port$i" "$1"
  done
}

on_node() { # namespace, command...
  exec ip netns exec "$1" unshare --uts --ipc --mount sh -c \
    'hostname "$0" && mount -t tmpfs -o size=2g tmpfs /dev/shm && exec "$@"' "$@"
}

run() { # slots, ranks, arguments of mpirun...
  local i count slots=$1 ranks=$2
  shift 2
  count=$(nodes_up)
  for ((i = 0; i < count; i++)); do echo "$(node "$i") slots=$slots"; done > "$state/hosts.$slots"
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  export OMPI_MCA_plm_rsh_agent="$self rsh" OMPI_MCA_plm_rsh_no_tree_spawn=1
  export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader,tcp OMPI_MCA_osc=^ucx
  # The default without "put": with it a whole message is one write, and the other direction's request for data
  # waits behind it in the same connection, so that an exchange takes the time of two messages instead of one.
  export OMPI_MCA_btl_tcp_flags=send,inplace,need-ack,need-csum,hetero-rdma
  export OMPI_MCA_btl_tcp_if_include=$subnet.0/24 OMPI_MCA_oob_tcp_if_include=$subnet.0/24
  export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none
  on_node "$(node 0)" mpirun --hostfile "$state/hosts.$slots" -n "$ranks" "$@"
}

down() {
  local ns
  for ns in $(ip netns list | awk -v name="$name" '$1 ~ "^" name "-(switch|node[0-9]+)$" {print $1}'); do
    ip netns pids "$ns" | xargs -r kill -9 || true  # they may have ended by themselves
    ip netns delete "$ns"
    rm -rf "/etc/netns/$ns"
  done
  rm -rf "$state" "/etc/netns/$name-node"*
}

command=${1:-}
case $command:$# in
check:1 | down:1 | up:2 | shape:2) shift; "$command" "$@" ;;
run:*) [ $# -ge 4 ] || fail "run needs SLOTS NP COMMAND"; shift; run "$@" ;;
rsh:*) ns=$2; shift 2; on_node "$ns" sh -c "$*" ;;  # how mpirun starts its daemon on another node
*) sed -n '2,13s/^# \{0,1\}//p' "$self"; exit 2 ;;
esac
