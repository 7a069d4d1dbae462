#!/usr/bin/env bash
# The driver on kind, with simulated GPUs, for machines with Docker.
#
# Untested: it was written where no Docker daemon runs, and only shellcheck has read it. The local
# cluster (`make demo`) is what this project is tested on; it needs neither Docker nor kind.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: hack/kind-up.sh [up|down|help]

up    Build the image, create the kind cluster of kind-config.yaml, give each worker a simulated
      machine of GPUs, and install the chart with helm. Run again, it builds, loads and upgrades.
down  Delete the cluster, the simulated machines and their processes. The image stays.

It needs docker, kind, kubectl, helm, a C compiler, .venv (`make setup`), and root: without it the
machines' device nodes would be plain files. Of the environment it heeds:

  CLUSTER   name of the cluster (ration)
  MACHINE   the simulated machine of each worker (hgx-h100); `python -m simulator machines` lists them
  IMAGE     the image's name and tag (ration:dev)
  NODE      the image of kind's nodes (kindest/node:v1.37.1)
  FOLDER    where the machines are laid out (.kind of the checkout); an absolute path

What is not simulated is said in docs/how-to/kind.md.
USAGE
}

readonly CLUSTER=${CLUSTER:-ration} MACHINE=${MACHINE:-hgx-h100}
readonly IMAGE=${IMAGE:-ration:dev} NODE=${NODE:-kindest/node:v1.37.1}
checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly checkout
readonly machines=${FOLDER:-$checkout/.kind}/$CLUSTER
readonly python=$checkout/.venv/bin/python

say() { printf '%s\n' "$*" >&2; }

# Ends with a word on what this machine lacks of the programs named.
need() {
    local missing=() program
    for program in "$@"; do
        command -v "$program" >/dev/null || missing+=("$program")
    done
    if ((${#missing[@]})); then
        say "missing: ${missing[*]}"
        exit 1
    fi
    if ((EUID != 0)); then
        say "run it as root: the simulated machines have device nodes"
        exit 1
    fi
    docker info >/dev/null
}

# The names that kind gives to the workers of kind-config.yaml, in their order: NAME-worker, NAME-worker2.
workers() {
    awk -v name="$CLUSTER" '/- role: worker/ { n++; print name "-worker" (n > 1 ? n : "") }' \
        "$checkout/kind-config.yaml"
}

# kind-config.yaml, with each worker's machine mounted where hack/cluster/pods.yaml looks for it: the
# driver's files at /run/nvidia/driver, of the node and of the simulated host.
config() {
    awk -v name="$CLUSTER" -v machines="$machines" '
        function mount(from, to) {
            printf "      - hostPath: %s/%s\n        containerPath: %s\n", machine, from, to
        }
        /^name:/ { print "name: " name; next }
        { print }
        /- role: worker/ {
            n++
            machine = machines "/" name "-worker" (n > 1 ? n : "")
            print "    extraMounts:"
            mount("host-root", "/run/ration-lab/host")
            mount("driver-root", "/run/nvidia/driver")
            mount("driver-root", "/run/ration-lab/host/run/nvidia/driver")
        }' "$checkout/kind-config.yaml"
}

make_machines() {
    local worker
    mkdir -p "$machines"
    for worker in $(workers); do
        [[ -e $machines/$worker/machine.json ]] && continue
        (cd "$checkout" && "$python" -m simulator create "$machines/$worker" \
            --machine "$MACHINE" --seed "$worker")
    done
}

# kind's nodes have no Python: each machine's process runs in a container of our own image, in its
# node's PID namespace, because a GPU tells its processes by the node's numbers.
start_machines() {
    local worker
    for worker in $(workers); do
        docker rm --force "$worker-gpus" >/dev/null 2>&1 || true
        docker run --detach --name "$worker-gpus" --restart unless-stopped --user 0 --privileged \
            --pid "container:$worker" --volume "$machines/$worker:$machines/$worker" \
            --volume "$checkout/simulator:/src/simulator:ro" --workdir /src \
            --env PYTHONPATH=/opt/ration:/src "$IMAGE" \
            python -m simulator run "$machines/$worker" >/dev/null
    done
}

load_images() {
    local workload
    kind load docker-image "$IMAGE" --name "$CLUSTER"
    workload=$(cd "$checkout" && "$python" -c 'from hack.cluster import images; print(images.ensure()[1])')
    kind load image-archive "$workload" --name "$CLUSTER"
}

# The control plane has no GPUs: plugin and supervisor go where kind-config.yaml puts the label.
install() {
    helm upgrade --install ration "$checkout/deploy/helm/ration" \
        --kube-context "kind-$CLUSTER" --namespace ration-system --create-namespace \
        --values "$checkout/hack/cluster/pods.yaml" \
        --set "image.repository=${IMAGE%:*},image.tag=${IMAGE##*:}" \
        --set-string 'kubeletPlugin.nodeSelector.ration\.dev/allocator=controller' \
        --set-string 'mps.nodeSelector.ration\.dev/allocator=controller' \
        --wait --timeout 300s
}

up() {
    need docker kind kubectl helm cc "$python"
    docker build --file "$checkout/deploy/images/Dockerfile" --tag "$IMAGE" "$checkout"
    make_machines
    if ! kind get clusters | grep --fixed-strings --line-regexp "$CLUSTER" >/dev/null; then
        config | kind create cluster --image "$NODE" --config -
    fi
    start_machines
    load_images
    install
    say "Try next: kubectl --context kind-$CLUSTER get resourceslices"
    say "          kubectl --context kind-$CLUSTER apply -f examples/quickstart/quickstart.yaml"
}

down() {
    need docker kind
    local worker
    for worker in $(workers); do
        docker rm --force "$worker-gpus" >/dev/null 2>&1 || true
    done
    kind delete cluster --name "$CLUSTER"
    rm -rf -- "${machines:?}"
}

case ${1:-up} in
up) up ;;
down) down ;;
help | -h | --help) usage ;;
*)
    usage >&2
    exit 2
    ;;
esac
