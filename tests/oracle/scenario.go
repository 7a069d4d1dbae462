package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/dynamic-resource-allocation/structured"
	strictjson "sigs.k8s.io/json"
)

// wire is a scenario as it arrives. Objects are decoded one by one, so that an error names its own.
type wire struct {
	Slices     json.RawMessage `json:"slices"`
	Classes    json.RawMessage `json:"classes"`
	Allocated  json.RawMessage `json:"allocated"`
	Claims     json.RawMessage `json:"claims"`
	TaintRules json.RawMessage `json:"taintRules"`
	Node       struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"node"`
	Features map[string]bool `json:"features"`
}

// scenario is one question: may these claims be allocated on this node, now?
type scenario struct {
	slices    []*resourceapi.ResourceSlice
	classes   classes
	allocated []*resourceapi.ResourceClaim
	claims    []*resourceapi.ResourceClaim
	node      *corev1.Node
	features  structured.Features
}

func (o *oracle) parse(line []byte) (*scenario, error) {
	var read wire
	if err := strictly(line, &read); err != nil {
		return nil, wrong("scenario", "%v", err)
	}
	if read.Node.Name == "" {
		return nil, wrong("node.name", "empty; expected the node to allocate for")
	}
	features, err := parseFeatures(read.Features)
	if err != nil {
		return nil, err
	}
	parsed := &scenario{features: features, node: &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: read.Node.Name, Labels: read.Node.Labels},
	}}
	if parsed.slices, err = o.published(read.Slices, read.TaintRules); err != nil {
		return nil, err
	}
	if parsed.classes, err = parseClasses(read.Classes); err != nil {
		return nil, err
	}
	if parsed.allocated, err = parseClaims("allocated", read.Allocated, true); err != nil {
		return nil, err
	}
	if parsed.claims, err = parseClaims("claims", read.Claims, false); err != nil {
		return nil, err
	}
	if len(parsed.claims) == 0 {
		return nil, wrong("claims", "empty; expected at least one claim to allocate")
	}
	return parsed, nil
}

// published gives the slices as the scheduler sees them: with every DeviceTaintRule applied. The
// answer for the same bytes as last time is kept, for a run asks about one machine again and again.
func (o *oracle) published(rawSlices, rawRules json.RawMessage) ([]*resourceapi.ResourceSlice, error) {
	sum := slices.Concat(rawSlices, []byte{0}, rawRules)
	if o.slices != nil && bytes.Equal(sum, o.slicesOf) {
		return o.slices, nil
	}
	found, err := decode[resourceapi.ResourceSlice]("slices", "ResourceSlice", rawSlices)
	if err != nil {
		return nil, err
	}
	rules, err := decode[resourceapi.DeviceTaintRule]("taintRules", "DeviceTaintRule", rawRules)
	if err != nil {
		return nil, err
	}
	for _, rule := range rules {
		taint(found, rule.Spec)
	}
	o.slices, o.slicesOf = found, sum
	return found, nil
}

func parseClasses(raw json.RawMessage) (classes, error) {
	found, err := decode[resourceapi.DeviceClass]("classes", "DeviceClass", raw)
	if err != nil {
		return nil, err
	}
	byName := make(classes, len(found))
	for _, class := range found {
		byName[class.Name] = class
	}
	return byName, nil
}

func parseClaims(where string, raw json.RawMessage, allocated bool) ([]*resourceapi.ResourceClaim, error) {
	found, err := decode[resourceapi.ResourceClaim](where, "ResourceClaim", raw)
	if err != nil {
		return nil, err
	}
	for i, claim := range found {
		if (claim.Status.Allocation != nil) != allocated {
			want := map[bool]string{true: "an allocation", false: "none"}[allocated]
			return nil, wrong(fmt.Sprintf("%s[%d].status.allocation", where, i), "expected %s", want)
		}
		setDefaults(claim)
	}
	return found, nil
}

// decode reads objects of resource.k8s.io/v1; a field that this version does not have is an error.
func decode[T any](where, kind string, raw json.RawMessage) ([]*T, error) {
	var texts []json.RawMessage
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &texts); err != nil {
			return nil, wrong(where, "%v", err)
		}
	}
	found := make([]*T, 0, len(texts))
	for i, text := range texts {
		here := fmt.Sprintf("%s[%d]", where, i)
		var is metav1.TypeMeta
		if err := json.Unmarshal(text, &is); err != nil {
			return nil, wrong(here, "%v", err)
		}
		expected := schema.GroupVersionKind{Group: "resource.k8s.io", Version: "v1", Kind: kind}
		if given := is.GroupVersionKind(); !given.Empty() && given != expected {
			return nil, wrong(here, "is a %s; expected a %s", given, expected)
		}
		object := new(T)
		if err := strictly(text, object); err != nil {
			return nil, wrong(here, "%v", err)
		}
		found = append(found, object)
	}
	return found, nil
}

func strictly(text []byte, into any) error {
	unknown, err := strictjson.UnmarshalStrict(text, into)
	return errors.Join(append(unknown, err)...)
}

// setDefaults fills what the API server would have filled (api v1, `+default`).
func setDefaults(claim *resourceapi.ResourceClaim) {
	for i := range claim.Spec.Devices.Requests {
		request := &claim.Spec.Devices.Requests[i]
		if one := request.Exactly; one != nil {
			setCount(&one.AllocationMode, &one.Count)
		}
		for j := range request.FirstAvailable {
			one := &request.FirstAvailable[j]
			setCount(&one.AllocationMode, &one.Count)
		}
	}
}

func setCount(mode *resourceapi.DeviceAllocationMode, count *int64) {
	if *mode == "" {
		*mode = resourceapi.DeviceAllocationModeExactCount
	}
	if *mode == resourceapi.DeviceAllocationModeExactCount && *count == 0 {
		*count = 1
	}
}

// switches maps a feature gate to its place and to its default in Kubernetes 1.37.
var switches = map[string]struct {
	standard bool
	place    func(*structured.Features) *bool
}{
	"DRAAdminAccess":               {true, func(f *structured.Features) *bool { return &f.AdminAccess }},
	"DRAConsumableCapacity":        {true, func(f *structured.Features) *bool { return &f.ConsumableCapacity }},
	"DRADerivedAttributes":         {false, func(f *structured.Features) *bool { return &f.DerivedAttributes }},
	"DRADeviceBindingConditions":   {true, func(f *structured.Features) *bool { return &f.DeviceBindingAndStatus }},
	"DRADeviceCompatibilityGroups": {false, func(f *structured.Features) *bool { return &f.CompatibilityGroups }},
	"DRADeviceTaints":              {true, func(f *structured.Features) *bool { return &f.DeviceTaints }},
	"DRAFractionalCapacityRange":   {true, func(f *structured.Features) *bool { return &f.FractionalCapacityRange }},
	"DRAListTypeAttributes":        {false, func(f *structured.Features) *bool { return &f.ListTypeAttributes }},
	"DRAOptionalNodeOperations":    {false, func(f *structured.Features) *bool { return &f.OptionalNodeOperations }},
	"DRAPartitionableDevices":      {true, func(f *structured.Features) *bool { return &f.PartitionableDevices }},
	"DRAPrioritizedList":           {true, func(f *structured.Features) *bool { return &f.PrioritizedList }},
}

func parseFeatures(asked map[string]bool) (structured.Features, error) {
	var features structured.Features
	known := make([]string, 0, len(switches))
	for name, one := range switches {
		*one.place(&features) = one.standard
		known = append(known, name)
	}
	slices.Sort(known)
	for name, on := range asked {
		one, ok := switches[name]
		if !ok {
			return features, wrong("features."+name, "unknown; expected one of %s", strings.Join(known, ", "))
		}
		*one.place(&features) = on
	}
	return features, nil
}
