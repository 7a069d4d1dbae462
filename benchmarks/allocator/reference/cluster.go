package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/structured"
)

// cluster is what is asked about: every node has the slices of Template, in which @NODE@ stands for
// its name and @SERIAL@ for its number. Taken are the devices in use at first; as many are in use
// after every decision.
type cluster struct {
	Template string                     `json:"template"`
	Nodes    []string                   `json:"nodes"`
	Classes  []*resourceapi.DeviceClass `json:"classes"`
	Claim    *resourceapi.ResourceClaim `json:"claim"`
	Taken    [][3]string                `json:"taken"`
	Sample   int64                      `json:"sample"`
	Workers  int                        `json:"workers"`
	Seed     uint64                     `json:"seed"`
}

func (c *cluster) parts() ([]*corev1.Node, []*resourceapi.ResourceSlice, error) {
	nodes := make([]*corev1.Node, 0, len(c.Nodes))
	var published []*resourceapi.ResourceSlice
	for number, name := range c.Nodes {
		nodes = append(nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		serial := fmt.Sprintf("%08x", number)
		text := strings.NewReplacer("@NODE@", name, "@SERIAL@", serial).Replace(c.Template)
		var found []*resourceapi.ResourceSlice
		if err := json.Unmarshal([]byte(text), &found); err != nil {
			return nil, nil, err
		}
		published = append(published, found...)
	}
	return nodes, published, nil
}

// classes is what the allocator looks device classes up in.
type classes map[string]*resourceapi.DeviceClass

func (c classes) Get(name string) (*resourceapi.DeviceClass, error) {
	if class, ok := c[name]; ok {
		return class, nil
	}
	return nil, apierrors.NewNotFound(resourceapi.Resource("deviceclasses"), name)
}

func (c classes) List() ([]*resourceapi.DeviceClass, error) {
	return slices.Collect(maps.Values(c)), nil
}

// features are those that are on by default in Kubernetes 1.37.
var features = structured.Features{
	AdminAccess:             true,
	ConsumableCapacity:      true,
	DeviceBindingAndStatus:  true,
	DeviceTaints:            true,
	FractionalCapacityRange: true,
	PartitionableDevices:    true,
	PrioritizedList:         true,
}
