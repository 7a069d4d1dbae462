package main

import (
	"encoding/json"
	"slices"
	"testing"
)

const list = `{"items": [
  {"spec": {"podCIDR": "10.244.0.0/24"},
   "status": {"addresses": [{"type": "Hostname", "address": "a"}, {"type": "InternalIP", "address": "172.18.0.2"}]}},
  {"spec": {"podCIDR": "10.244.1.0/24"}, "status": {"addresses": [{"type": "InternalIP", "address": "172.18.0.3"}]}},
  {"spec": {}, "status": {"addresses": [{"type": "InternalIP", "address": "172.18.0.4"}]}},
  {"spec": {"podCIDR": "10.244.3.0/24"}, "status": {}}]}`

func TestANodeTakesItsOwnRangeAndRoutesToTheOthersThatHaveOne(t *testing.T) {
	nodes, err := parse([]byte(list))
	if err != nil {
		t.Fatal(err)
	}
	want := []step{
		{own: false, pods: "10.244.0.0/24", address: "172.18.0.2"},
		{own: true, pods: "10.244.1.0/24", address: "172.18.0.3"},
	}
	if got := plan(nodes, "172.18.0.3"); !slices.Equal(got, want) {
		t.Errorf("plan: %v, want %v", got, want)
	}
}

func TestWhatIsNoListIsAnError(t *testing.T) {
	if _, err := parse([]byte("<html>")); err == nil {
		t.Error("no error")
	}
}

func TestTheConfigurationHandsOutTheNodesOwnRange(t *testing.T) {
	var document struct {
		Plugins []struct {
			Type string
			IPAM struct{ Ranges [][]struct{ Subnet string } }
		}
	}
	if err := json.Unmarshal(render("10.244.1.0/24"), &document); err != nil {
		t.Fatal(err)
	}
	if got := document.Plugins[0].IPAM.Ranges[0][0].Subnet; got != "10.244.1.0/24" {
		t.Errorf("subnet: %s", got)
	}
}
