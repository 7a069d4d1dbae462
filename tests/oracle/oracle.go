package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// patience is how long kube-scheduler lets one node's search take (DRASchedulerFilterTimeout).
const patience = 10 * time.Second

// oracle keeps what is dear to make between scenarios; no answer depends on an earlier one.
type oracle struct {
	programs map[cel.Features]*cel.Cache
	slices   []*resourceapi.ResourceSlice
	slicesOf []byte
}

func newOracle() *oracle {
	return &oracle{programs: map[cel.Features]*cel.Cache{}}
}

func (o *oracle) answer(line []byte) Answer {
	asked, err := o.parse(line)
	if err != nil {
		return failure(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return worded(o.allocate(ctx, asked))
}

// worded puts what the allocator says into words.
func worded(allocations []resourceapi.AllocationResult, err error) Answer {
	switch {
	case errors.Is(err, structured.ErrFailedAllocationOnNode):
		return refusal(err.Error())
	case err != nil:
		return failure(err)
	case allocations == nil:
		return refusal("")
	}
	return Answer{Allocations: allocations}
}

func (o *oracle) allocate(ctx context.Context, asked *scenario) ([]resourceapi.AllocationResult, error) {
	state := inUse(asked.allocated, asked.features.ConsumableCapacity)
	allocator, err := structured.NewAllocator(
		ctx, asked.features, state, asked.classes, asked.slices, o.compiled(asked.features))
	if err != nil {
		return nil, err
	}
	return allocator.Allocate(ctx, asked.node, asked.claims)
}

// compiled is the cache of selectors for these features; they decide which CEL there is.
func (o *oracle) compiled(features structured.Features) *cel.Cache {
	language := cel.Features{
		EnableConsumableCapacity: features.ConsumableCapacity,
		EnableListTypeAttributes: features.ListTypeAttributes,
	}
	if o.programs[language] == nil {
		o.programs[language] = cel.NewCache(1000, language)
	}
	return o.programs[language]
}

// inUse says what allocated claims take, as kube-scheduler counts it: a result with admin access
// takes nothing; one with a share takes its capacity, the device stays open; any other takes the
// device. What counters they consume, the allocator reads from their devices' slices.
func inUse(claims []*resourceapi.ResourceClaim, sharing bool) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, claim := range claims {
		for _, result := range claim.Status.Allocation.Devices.Results {
			if result.AdminAccess != nil && *result.AdminAccess {
				continue
			}
			device := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
			if !sharing || result.ShareID == nil {
				state.AllocatedDevices.Insert(device)
				continue
			}
			share := structured.MakeSharedDeviceID(device, result.ShareID)
			state.AllocatedSharedDeviceIDs.Insert(share)
			state.AggregatedCapacity.Insert(
				structured.NewDeviceConsumedCapacity(device, result.ConsumedCapacity))
		}
	}
	return state
}

// taint adds a rule's taint to the devices it selects; a rule without a selector selects none.
func taint(published []*resourceapi.ResourceSlice, rule resourceapi.DeviceTaintRuleSpec) {
	selector := rule.DeviceSelector
	if selector == nil {
		return
	}
	for _, slice := range published {
		if !admits(selector.Driver, slice.Spec.Driver) || !admits(selector.Pool, slice.Spec.Pool.Name) {
			continue
		}
		for i := range slice.Spec.Devices {
			device := &slice.Spec.Devices[i]
			if admits(selector.Device, device.Name) {
				device.Taints = append(device.Taints, rule.Taint)
			}
		}
	}
}

func admits(wanted *string, name string) bool { return wanted == nil || *wanted == name }

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

func refusal(reason string) Answer { return Answer{Unallocated: &reason} }

func failure(err error) Answer {
	var problem *Problem
	if !errors.As(err, &problem) {
		problem = wrong("allocator", "%v", err)
	}
	return Answer{Error: problem}
}
