package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/structured"
)

// clusterWire is a whole cluster as it arrives. Earlier claims are allocated first, one by one, each
// on its node; those that fit join the allocated ones. Then Claims are asked on every node.
type clusterWire struct {
	Slices     json.RawMessage `json:"slices"`
	Classes    json.RawMessage `json:"classes"`
	Allocated  json.RawMessage `json:"allocated"`
	Earlier    json.RawMessage `json:"earlier"`
	On         []string        `json:"on"`
	Claims     json.RawMessage `json:"claims"`
	TaintRules json.RawMessage `json:"taintRules"`
	Nodes      []nodeWire      `json:"nodes"`
	Features   map[string]bool `json:"features"`
	Patience   int64           `json:"patienceMs"`
}

type nodeWire struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
}

// clusterAnswer has an allocation (or null) for every earlier claim and an answer for every node,
// with how long each took.
type clusterAnswer struct {
	Earlier []*resourceapi.AllocationResult `json:"earlier"`
	Nodes   []Answer                        `json:"nodes"`
	Micros  []int64                         `json:"micros"`
	Error   *Problem                        `json:"error,omitempty"`
}

// answerClusters reads a cluster a line and writes an answer a line, until the input ends.
func answerClusters(questions io.Reader, answers io.Writer) error {
	oracle := newOracle()
	return eachLine(questions, answers, func(line []byte) any {
		told, err := oracle.answerCluster(line)
		if err != nil {
			return clusterAnswer{Error: failure(err).Error}
		}
		return told
	})
}

func eachLine(questions io.Reader, answers io.Writer, answer func([]byte) any) error {
	reader := bufio.NewReaderSize(questions, 1<<20)
	writer := json.NewEncoder(answers)
	for {
		line, err := reader.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(line) > 0 {
			if failed := writer.Encode(answer(line)); failed != nil {
				return failed
			}
		}
		if err != nil {
			return nil
		}
	}
}

// playing is a cluster while it is asked about.
type playing struct {
	oracle   *oracle
	scenario scenario
	patience time.Duration
	nodes    map[string]*corev1.Node
}

func (o *oracle) answerCluster(line []byte) (*clusterAnswer, error) {
	var read clusterWire
	if err := strictly(line, &read); err != nil {
		return nil, wrong("cluster", "%v", err)
	}
	game, err := o.play(&read)
	if err != nil {
		return nil, err
	}
	earlier, err := parseClaims("earlier", read.Earlier, false)
	if err != nil {
		return nil, err
	}
	if len(earlier) != len(read.On) {
		return nil, wrong("on", "%d nodes for %d earlier claims", len(read.On), len(earlier))
	}
	told := &clusterAnswer{
		Earlier: make([]*resourceapi.AllocationResult, len(earlier)),
		Nodes:   make([]Answer, 0, len(read.Nodes)),
		Micros:  make([]int64, 0, len(read.Nodes)),
	}
	for i, claim := range earlier {
		node := game.nodes[read.On[i]]
		if node == nil {
			return nil, wrong(fmt.Sprintf("on[%d]", i), "no node %q", read.On[i])
		}
		told.Earlier[i] = game.settle(claim, node)
	}
	if err := game.ask(&read, told); err != nil {
		return nil, err
	}
	return told, nil
}

func (o *oracle) play(read *clusterWire) (*playing, error) {
	features, err := parseFeatures(read.Features)
	if err != nil {
		return nil, err
	}
	game := &playing{oracle: o, patience: patience, nodes: map[string]*corev1.Node{}}
	if read.Patience > 0 {
		game.patience = time.Duration(read.Patience) * time.Millisecond
	}
	game.scenario.features = features
	if game.scenario.slices, err = o.published(read.Slices, read.TaintRules); err != nil {
		return nil, err
	}
	if game.scenario.classes, err = parseClasses(read.Classes); err != nil {
		return nil, err
	}
	if game.scenario.allocated, err = parseClaims("allocated", read.Allocated, true); err != nil {
		return nil, err
	}
	for i, node := range read.Nodes {
		if node.Name == "" {
			return nil, wrong(fmt.Sprintf("nodes[%d].name", i), "empty")
		}
		meta := metav1.ObjectMeta{Name: node.Name, Labels: node.Labels}
		game.nodes[node.Name] = &corev1.Node{ObjectMeta: meta}
	}
	return game, nil
}

// settle allocates one claim on the node, for good; nil where it does not fit.
func (p *playing) settle(claim *resourceapi.ResourceClaim, node *corev1.Node) *resourceapi.AllocationResult {
	allocator, err := p.allocator(context.Background())
	if err != nil {
		return nil
	}
	// With all patience: what is allocated must not depend on how busy this machine is.
	answer := try(patience, allocator, []*resourceapi.ResourceClaim{claim}, node)
	if answer.Allocations == nil {
		return nil
	}
	claim.Status.Allocation = &answer.Allocations[0]
	p.scenario.allocated = append(p.scenario.allocated, claim)
	return claim.Status.Allocation
}

// ask fills in what every node answers. As in the scheduler one allocator serves all of them.
func (p *playing) ask(read *clusterWire, told *clusterAnswer) error {
	claims, err := parseClaims("claims", read.Claims, false)
	if err != nil {
		return err
	}
	allocator, err := p.allocator(context.Background())
	if err != nil {
		return err
	}
	for _, node := range read.Nodes {
		begun := time.Now()
		told.Nodes = append(told.Nodes, try(p.patience, allocator, claims, p.nodes[node.Name]))
		told.Micros = append(told.Micros, time.Since(begun).Microseconds())
	}
	return nil
}

func (p *playing) allocator(ctx context.Context) (structured.Allocator, error) {
	known := p.scenario
	state := inUse(known.allocated, known.features.ConsumableCapacity)
	return structured.NewAllocator(
		ctx, known.features, state, known.classes, known.slices, p.oracle.compiled(known.features))
}

func try(
	limit time.Duration, allocator structured.Allocator, claims []*resourceapi.ResourceClaim, node *corev1.Node,
) Answer {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return worded(allocator.Allocate(ctx, node, claims))
}
