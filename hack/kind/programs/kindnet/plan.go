package main

import "encoding/json"

// node is what counts of a Node: its address inside the cluster and the range of its pods.
type node struct {
	address, pods string
}

// step is what one node asks of this one: to take the range for its own pods, or a route.
type step struct {
	own           bool
	pods, address string
}

// plan says what to do about each node that has a range and an address.
func plan(nodes []node, host string) []step {
	var steps []step
	for _, n := range nodes {
		if n.pods == "" || n.address == "" {
			continue
		}
		steps = append(steps, step{own: n.address == host, pods: n.pods, address: n.address})
	}
	return steps
}

// parse reads a NodeList.
func parse(text []byte) ([]node, error) {
	var list struct {
		Items []struct {
			Spec struct {
				PodCIDR string `json:"podCIDR"`
			} `json:"spec"`
			Status struct {
				Addresses []struct{ Type, Address string } `json:"addresses"`
			} `json:"status"`
		} `json:"items"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	var nodes []node
	for _, item := range list.Items {
		n := node{pods: item.Spec.PodCIDR}
		for _, a := range item.Status.Addresses {
			if a.Type == "InternalIP" && n.address == "" {
				n.address = a.Address
			}
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// render is the CNI configuration of a node whose pods have that range.
func render(pods string) []byte {
	type object = map[string]any
	document := object{
		"cniVersion": "0.3.1",
		"name":       "kindnet",
		"plugins": []object{
			{
				"type": "ptp", "ipMasq": false, "mtu": 1500,
				"ipam": object{
					"type":    "host-local",
					"dataDir": "/run/cni-ipam-state",
					"routes":  []object{{"dst": "0.0.0.0/0"}},
					"ranges":  [][]object{{{"subnet": pods}}},
				},
			},
			{"type": "portmap", "capabilities": object{"portMappings": true}},
		},
	}
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		panic(err) // it holds nothing that JSON lacks
	}
	return append(text, '\n')
}
