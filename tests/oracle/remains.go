package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/structured"
)

// The prober's own names: no object of a scenario may use them.
const (
	probeNode  = "probe.ration.local"
	probeClass = "probe.ration.local"
	probeName  = "probe-of-counters"
	probeMark  = resourceapi.QualifiedName(probeClass + "/is")
)

// remainsWire asks what allocated claims leave of what the slices offer.
type remainsWire struct {
	Slices    json.RawMessage `json:"slices"`
	Allocated json.RawMessage `json:"allocated"`
	Features  map[string]bool `json:"features"`
}

// remains is what is left as the reference counts it. Keys are driver/pool and driver/pool/device.
// Counters are available amounts; each was confirmed by the reference's allocator.
type remains struct {
	Taken    []string                                                    `json:"taken"`
	Consumed map[string]map[resourceapi.QualifiedName]*resource.Quantity `json:"consumed"`
	Counters map[string]map[string]map[string]*resource.Quantity         `json:"counters"`
	Error    *Problem                                                    `json:"error,omitempty"`
}

// answerRemains reads a question a line and writes what remains a line, until the input ends.
func answerRemains(questions io.Reader, answers io.Writer) error {
	oracle := newOracle()
	return eachLine(questions, answers, func(line []byte) any {
		told, err := oracle.remaining(line)
		if err != nil {
			return remains{Error: failure(err).Error}
		}
		return told
	})
}

func (o *oracle) remaining(line []byte) (*remains, error) {
	var read remainsWire
	if err := strictly(line, &read); err != nil {
		return nil, wrong("remains", "%v", err)
	}
	features, err := parseFeatures(read.Features)
	if err != nil {
		return nil, err
	}
	published, err := o.published(read.Slices, nil)
	if err != nil {
		return nil, err
	}
	allocated, err := parseClaims("allocated", read.Allocated, true)
	if err != nil {
		return nil, err
	}
	state := inUse(allocated, features.ConsumableCapacity)
	told := &remains{
		Taken:    []string{},
		Consumed: map[string]map[resourceapi.QualifiedName]*resource.Quantity{},
		Counters: map[string]map[string]map[string]*resource.Quantity{},
	}
	for device := range state.AllocatedDevices {
		told.Taken = append(told.Taken, device.String())
	}
	for share := range state.AllocatedSharedDeviceIDs {
		told.Consumed[share.GetDeviceID().String()] = state.AggregatedCapacity[share.GetDeviceID()]
	}
	for name, pool := range gather(published) {
		left, err := o.counters(features, state, pool)
		if err != nil {
			return nil, fmt.Errorf("pool %s: %w", name, err)
		}
		if left != nil {
			told.Counters[name] = left
		}
	}
	return told, nil
}

// gather groups slices by pool, of each pool the newest generation.
func gather(published []*resourceapi.ResourceSlice) map[string][]*resourceapi.ResourceSlice {
	pools := map[string][]*resourceapi.ResourceSlice{}
	for _, slice := range published {
		name := slice.Spec.Driver + "/" + slice.Spec.Pool.Name
		known := pools[name]
		switch {
		case len(known) == 0 || slice.Spec.Pool.Generation > known[0].Spec.Pool.Generation:
			pools[name] = []*resourceapi.ResourceSlice{slice}
		case slice.Spec.Pool.Generation == known[0].Spec.Pool.Generation:
			pools[name] = append(known, slice)
		}
	}
	return pools
}

type counterLeft map[string]map[string]*resource.Quantity

// counters says what is left of a pool's counters. The numbers are a plain subtraction; then the
// reference is asked of each whether a device that takes all of it fits and one that takes a unit
// more does not. A pool that the reference does not use has no counters: nil.
func (o *oracle) counters(
	features structured.Features, state structured.AllocatedState, pool []*resourceapi.ResourceSlice,
) (counterLeft, error) {
	left := subtract(state, pool)
	if len(left) == 0 || int64(len(pool)) != pool[0].Spec.Pool.ResourceSliceCount {
		return nil, nil
	}
	valid, err := o.fits(features, state, pool, nil)
	if err != nil || !valid {
		return nil, err
	}
	overdrawn := false
	for _, counters := range left {
		for _, amount := range counters {
			overdrawn = overdrawn || amount.Sign() < 0
		}
	}
	for set, counters := range left {
		for name, amount := range counters {
			for more, expected := range map[int64]bool{0: !overdrawn, 1: false} {
				asked := amount.DeepCopy()
				asked.Add(*resource.NewMilliQuantity(more, resource.DecimalSI))
				fits, err := o.fits(features, state, pool, &resourceapi.DeviceCounterConsumption{
					CounterSet: set, Counters: map[string]resourceapi.Counter{name: {Value: asked}},
				})
				if err != nil {
					return nil, err
				}
				if fits != expected {
					return nil, wrong("probe", "%s/%s: %s left, but a device of %s fits is %t",
						set, name, amount, asked.String(), fits)
				}
			}
		}
	}
	return left, nil
}

func subtract(state structured.AllocatedState, pool []*resourceapi.ResourceSlice) counterLeft {
	left := counterLeft{}
	for _, slice := range pool {
		for _, set := range slice.Spec.SharedCounters {
			left[set.Name] = map[string]*resource.Quantity{}
			for name, counter := range set.Counters {
				amount := counter.Value.DeepCopy()
				left[set.Name][name] = &amount
			}
		}
	}
	for _, slice := range pool {
		for _, device := range slice.Spec.Devices {
			id := structured.MakeDeviceID(slice.Spec.Driver, slice.Spec.Pool.Name, device.Name)
			if !structured.IsDeviceAllocated(id, &state) {
				continue
			}
			for _, uses := range device.ConsumesCounters {
				for name, counter := range uses.Counters {
					if amount := left[uses.CounterSet][name]; amount != nil {
						amount.Sub(counter.Value)
					}
				}
			}
		}
	}
	return left
}

// fits asks the reference's allocator whether one more device of the pool, which draws on its
// counters as said, could be allocated now. Without counters it says whether the pool is usable.
func (o *oracle) fits(
	features structured.Features, state structured.AllocatedState,
	pool []*resourceapi.ResourceSlice, uses *resourceapi.DeviceCounterConsumption,
) (bool, error) {
	everywhere := true
	probe := resourceapi.Device{Name: probeName}
	if uses != nil {
		probe.ConsumesCounters = []resourceapi.DeviceCounterConsumption{*uses}
	}
	probe.Attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
		probeMark: {BoolValue: &everywhere},
	}
	extra := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: probeName}}
	extra.Spec = resourceapi.ResourceSliceSpec{
		Driver: pool[0].Spec.Driver, Pool: pool[0].Spec.Pool, AllNodes: &everywhere,
		Devices: []resourceapi.Device{probe},
	}
	all := []*resourceapi.ResourceSlice{extra}
	for _, slice := range pool {
		all = append(all, slice.DeepCopy())
	}
	for _, slice := range all {
		slice.Spec.Pool.ResourceSliceCount = int64(len(all))
	}
	class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: probeClass}}
	only := resourceapi.CELDeviceSelector{
		Expression: `"is" in device.attributes["` + probeClass + `"]`,
	}
	class.Spec.Selectors = []resourceapi.DeviceSelector{{CEL: &only}}
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: probeName}}
	claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{{
		Name: "probe", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: probeClass},
	}}
	setDefaults(claim)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	allocator, err := structured.NewAllocator(
		ctx, features, state, classes{probeClass: class}, all, o.compiled(features))
	if err != nil {
		return false, err
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: probeNode}}
	answer := worded(allocator.Allocate(ctx, node, []*resourceapi.ResourceClaim{claim}))
	if answer.Error != nil {
		return false, answer.Error
	}
	return answer.Allocations != nil, nil
}
