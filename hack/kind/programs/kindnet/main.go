// Command kindnet gives the pods of a kind cluster their network: routes to the other nodes' pods,
// masquerading of what leaves the cluster, and each node's CNI configuration. It runs as the
// DaemonSet that kind installs by default, with that one's account and environment (HOST_IP,
// POD_SUBNET), where kindnetd itself cannot be had. It knows no NetworkPolicy and no IPv6.
package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"time"
)

const (
	configuration = "/etc/cni/net.d/10-kindnet.conflist"
	chain         = "KIND-MASQ-AGENT"
	period        = 10 * time.Second
	afterFailure  = 2 * time.Second
)

func main() {
	host, subnet := os.Getenv("HOST_IP"), os.Getenv("POD_SUBNET")
	if host == "" || subnet == "" {
		log.Fatal("HOST_IP and POD_SUBNET must be set")
	}
	api, err := newClient()
	if err != nil {
		log.Fatal(err)
	}
	for {
		pause := period
		if err := reconcile(api, host, subnet); err != nil {
			log.Print(err)
			pause = afterFailure
		}
		time.Sleep(pause)
	}
}

// reconcile brings this node's rules, routes and configuration to what the nodes' ranges ask for.
func reconcile(api *client, host, subnet string) error {
	if err := masquerade(subnet); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), period)
	defer cancel()
	nodes, err := api.nodes(ctx)
	if err != nil {
		return err
	}
	for _, step := range plan(nodes, host) {
		if step.own {
			if err := configure(step.pods); err != nil {
				return err
			}
		} else if err := run("ip", "route", "replace", step.pods, "via", step.address); err != nil {
			return err
		}
	}
	return nil
}

// masquerade has packets of pods leave the cluster under the node's address.
func masquerade(subnet string) error {
	nat := []string{"-w", "-t", "nat"}
	_ = run("iptables", append(nat, "-N", chain)...) // it may be there
	for _, rule := range [][]string{
		{chain, "-d", subnet, "-j", "RETURN"},
		{chain, "-j", "MASQUERADE"},
		{"POSTROUTING", "-m", "addrtype", "!", "--dst-type", "LOCAL", "-j", chain},
	} {
		if run("iptables", append(append(nat, "-C"), rule...)...) == nil {
			continue
		}
		if err := run("iptables", append(append(nat, "-A"), rule...)...); err != nil {
			return err
		}
	}
	return nil
}

// configure writes the CNI configuration, whole or not at all, where it differs.
func configure(pods string) error {
	wanted := render(pods)
	if present, err := os.ReadFile(configuration); err == nil && bytes.Equal(present, wanted) {
		return nil
	}
	part := configuration + ".part"
	if err := os.WriteFile(part, wanted, 0o644); err != nil {
		return err
	}
	log.Printf("pods of this node: %s", pods)
	return os.Rename(part, configuration)
}

func run(name string, words ...string) error {
	out, err := exec.Command(name, words...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %v: %w: %s", name, words, err, bytes.TrimSpace(out))
	}
	return nil
}
