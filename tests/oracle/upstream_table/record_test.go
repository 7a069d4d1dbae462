// Record the cases of the allocator's own test table: its inputs as objects of the API, and the
// answers of the allocator. This file is compiled in a copy of the module's package
// structured/internal/experimental (tests/oracle/upstream_table/build.py).

package experimental

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured/internal"
	"k8s.io/dynamic-resource-allocation/structured/internal/allocatortesting"
)

// device is an allocated device; a share has an id, and consumes capacity.
type device struct {
	Driver   string            `json:"driver"`
	Pool     string            `json:"pool"`
	Device   string            `json:"device"`
	ShareID  string            `json:"shareID,omitempty"`
	Consumed map[string]string `json:"consumedCapacity,omitempty"`
}

// tableCase is one line of the recording.
type tableCase struct {
	Name        string                         `json:"name"`
	Features    []string                       `json:"features"`
	Classes     []*resourceapi.DeviceClass     `json:"classes"`
	Slices      []*resourceapi.ResourceSlice   `json:"slices"`
	Claims      []*resourceapi.ResourceClaim   `json:"claims"`
	Node        string                         `json:"node"`
	Labels      map[string]string              `json:"labels"`
	Allocated   []device                       `json:"allocated"`
	Shares      []device                       `json:"shares"`
	Capacity    []device                       `json:"capacity"`
	Allocations []resourceapi.AllocationResult `json:"allocations"`
	Error       string                         `json:"error"`
}

// recorder is an allocator that writes down what it is asked and what it answers.
type recorder struct {
	internal.Allocator
	entry  tableCase
	writer *json.Encoder
}

func (r *recorder) GetStats() internal.Stats {
	return r.Allocator.(internal.AllocatorExtended).GetStats()
}

func (r *recorder) Allocate(
	ctx context.Context, node *v1.Node, claims []*resourceapi.ResourceClaim,
) ([]resourceapi.AllocationResult, error) {
	r.entry.Node, r.entry.Labels, r.entry.Claims = node.Name, node.Labels, claims
	allocations, err := r.Allocator.Allocate(ctx, node, claims)
	r.entry.Allocations = allocations
	if err != nil {
		r.entry.Error = err.Error()
	}
	if err := r.writer.Encode(r.entry); err != nil {
		panic(err)
	}
	return allocations, err
}

func TestRecord(t *testing.T) {
	file, err := os.Create(os.Getenv("RATION_TABLE"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	writer := json.NewEncoder(file)
	newAllocator := func(
		ctx context.Context,
		features Features,
		state AllocatedState,
		classes DeviceClassLister,
		slices []*resourceapi.ResourceSlice,
		cache *cel.Cache,
	) (internal.Allocator, error) {
		allocator, err := NewAllocator(ctx, features, state, classes, slices, cache)
		if err != nil {
			return nil, err
		}
		entry := tableCase{Name: allocatortesting.CaseName, Features: sets.List(features.Set()), Slices: slices}
		if entry.Classes, err = classes.List(); err != nil {
			return nil, err
		}
		for id := range state.AllocatedDevices {
			entry.Allocated = append(entry.Allocated, device{
				Driver: id.Driver.String(), Pool: id.Pool.String(), Device: id.Device.String(),
			})
		}
		for id := range state.AllocatedSharedDeviceIDs {
			entry.Shares = append(entry.Shares, device{
				Driver: id.Driver.String(), Pool: id.Pool.String(), Device: id.Device.String(),
				ShareID: id.ShareID.String(),
			})
		}
		for id, amounts := range state.AggregatedCapacity {
			consumed := map[string]string{}
			for name, amount := range amounts {
				consumed[string(name)] = amount.String()
			}
			entry.Capacity = append(entry.Capacity, device{
				Driver: id.Driver.String(), Pool: id.Pool.String(), Device: id.Device.String(),
				Consumed: consumed,
			})
		}
		return &recorder{Allocator: allocator, entry: entry, writer: writer}, nil
	}
	allocatortesting.TestAllocator(t, SupportedFeatures, newAllocator)
	allocatortesting.TestLexicographicalAllocator(t, SupportedFeatures, newAllocator)
}
