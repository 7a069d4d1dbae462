package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// patience is how long kube-scheduler lets one node's search take (DRASchedulerFilterTimeout).
const patience = 10 * time.Second

// scheduler decides as kube-scheduler does: for every claim it copies what is allocated, makes an
// allocator and asks nodes in turn, from where it stopped last, until enough of them do.
type scheduler struct {
	known    *cluster
	nodes    []*corev1.Node
	slices   []*resourceapi.ResourceSlice
	classes  classes
	programs *cel.Cache
	state    structured.AllocatedState
	held     [][]structured.DeviceID
	most     int
	next     int
	draw     *rand.Rand
}

func newScheduler(known *cluster) (*scheduler, error) {
	nodes, published, err := known.parts()
	if err != nil {
		return nil, err
	}
	made := &scheduler{
		known: known, nodes: nodes, slices: published, classes: classes{},
		programs: cel.NewCache(1000, cel.Features{EnableConsumableCapacity: features.ConsumableCapacity}),
		state: structured.AllocatedState{
			AllocatedDevices:         sets.New[structured.DeviceID](),
			AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
			AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
		},
		draw: rand.New(rand.NewPCG(known.Seed, 1)),
	}
	for _, class := range known.Classes {
		made.classes[class.Name] = class
	}
	for _, one := range known.Taken {
		made.take([]structured.DeviceID{structured.MakeDeviceID(one[0], one[1], one[2])})
	}
	made.most = len(made.state.AllocatedDevices)
	known.Template, known.Taken = "", nil
	return made, nil
}

// run makes count decisions, one after the other.
func (s *scheduler) run(count int) (*answer, error) {
	told := &answer{Micros: make([]float64, 0, count)}
	for range count {
		begun := time.Now()
		found, err := s.decide(told)
		if err != nil {
			return nil, err
		}
		if found == nil {
			told.Refused++
		} else {
			s.settle(found)
		}
		told.Micros = append(told.Micros, float64(time.Since(begun).Nanoseconds())/1000)
	}
	return told, nil
}

// settle takes an allocation's devices, and frees what claims drawn by lot have until no more are
// in use than at first.
func (s *scheduler) settle(found *resourceapi.AllocationResult) {
	devices := make([]structured.DeviceID, 0, len(found.Devices.Results))
	for _, one := range found.Devices.Results {
		devices = append(devices, structured.MakeDeviceID(one.Driver, one.Pool, one.Device))
	}
	for len(s.state.AllocatedDevices)+len(devices) > s.most {
		last := len(s.held) - 1
		drawn := s.draw.IntN(last + 1)
		s.state.AllocatedDevices.Delete(s.held[drawn]...)
		s.held[drawn] = s.held[last]
		s.held = s.held[:last]
	}
	s.take(devices)
}

func (s *scheduler) take(devices []structured.DeviceID) {
	s.state.AllocatedDevices.Insert(devices...)
	s.held = append(s.held, devices)
}

// decide asks nodes until the sample is full; of those that do, one is drawn by lot, as when
// nothing else tells nodes apart.
func (s *scheduler) decide(told *answer) (*resourceapi.AllocationResult, error) {
	state := structured.AllocatedState{
		AllocatedDevices:         s.state.AllocatedDevices.Clone(),
		AllocatedSharedDeviceIDs: s.state.AllocatedSharedDeviceIDs.Clone(),
		AggregatedCapacity:       s.state.AggregatedCapacity.Clone(),
	}
	ctx := context.Background()
	allocator, err := structured.NewAllocator(ctx, features, state, s.classes, s.slices, s.programs)
	if err != nil {
		return nil, err
	}
	sampling := &sample{allocator: allocator, scheduler: s}
	var workers sync.WaitGroup
	for range s.known.Workers {
		workers.Go(func() { sampling.work(ctx) })
	}
	workers.Wait()
	asked := min(sampling.asked.Load(), int64(len(s.nodes)))
	s.next = (s.next + int(asked)) % len(s.nodes)
	told.Asked += asked
	told.Feasible += int64(len(sampling.found))
	if len(sampling.found) == 0 {
		return nil, sampling.failed
	}
	return &sampling.found[s.draw.IntN(len(sampling.found))], nil
}

// sample is what the workers of one decision share.
type sample struct {
	allocator structured.Allocator
	scheduler *scheduler
	asked     atomic.Int64
	lock      sync.Mutex
	found     []resourceapi.AllocationResult
	failed    error
}

func (s *sample) work(ctx context.Context) {
	claims := []*resourceapi.ResourceClaim{s.scheduler.known.Claim}
	for {
		place := s.asked.Add(1) - 1
		if place >= int64(len(s.scheduler.nodes)) || s.full() {
			return
		}
		node := s.scheduler.nodes[(s.scheduler.next+int(place))%len(s.scheduler.nodes)]
		limited, cancel := context.WithTimeout(ctx, patience)
		answers, err := s.allocator.Allocate(limited, node, claims)
		cancel()
		s.note(answers, err)
	}
}

func (s *sample) full() bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	return int64(len(s.found)) >= s.scheduler.known.Sample
}

func (s *sample) note(answers []resourceapi.AllocationResult, err error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if err != nil && !errors.Is(err, structured.ErrFailedAllocationOnNode) {
		s.failed = err
	}
	s.found = append(s.found, answers...)
}
