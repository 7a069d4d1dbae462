package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodename"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeports"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeunschedulable"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/tainttoleration"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumerestrictions"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumezone"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// Refusals is, of one pod, what each plugin says of the nodes that it refuses.
type Refusals map[string]map[string]string

// Answer is of one pod.
type Answer struct {
	Refused Refusals `json:"refused"`
	Scores  Scores   `json:"scores"`
}

type factory = func(context.Context, runtime.Object, fwk.Handle, feature.Features) (fwk.Plugin, error)

type kind struct {
	new  factory
	args runtime.Object
}

var kinds = []kind{
	{nodename.New, nil},
	{nodeunschedulable.New, nil},
	{tainttoleration.New, nil},
	{nodeaffinity.New, &config.NodeAffinityArgs{}},
	{nodeports.New, nil},
	{noderesources.NewFit, &config.NodeResourcesFitArgs{ScoringStrategy: &config.ScoringStrategy{
		Type:      config.LeastAllocated,
		Resources: []config.ResourceSpec{{Name: "cpu", Weight: 1}, {Name: "memory", Weight: 1}},
	}}},
	{volumerestrictions.New, nil},
	{nodevolumelimits.NewCSI, nil},
	{newVolumeBinding, nil},
	{volumezone.New, nil},
	{podtopologyspread.New, &config.PodTopologySpreadArgs{DefaultingType: config.ListDefaulting}},
	{interpodaffinity.New, &config.InterPodAffinityArgs{HardPodAffinityWeight: 1}},
}

// newVolumeBinding gives the shape of a score, which no filter reads, where the gate asks for one; where
// the gate is off (1.36), a shape is refused.
func newVolumeBinding(ctx context.Context, _ runtime.Object, handle fwk.Handle, gates feature.Features) (fwk.Plugin, error) {
	args := &config.VolumeBindingArgs{BindTimeoutSeconds: 600}
	if gates.EnableStorageCapacityScoring {
		args.Shape = []config.UtilizationShapePoint{{Utilization: 0, Score: 0}}
	}
	return volumebinding.New(ctx, args, handle, gates)
}

func judge(line []byte, weights map[string]int64) ([]Answer, error) {
	var cluster Cluster
	if err := json.Unmarshal(line, &cluster); err != nil {
		return nil, err
	}
	placed, nominated := cluster.placed()
	snapshot := internalcache.NewSnapshot(placed, cluster.Nodes)
	// What the framework runs beside ends with the question.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	plugins, err := build(ctx, &cluster, snapshot)
	if err != nil {
		return nil, err
	}
	nodes, err := snapshot.NodeInfos().List()
	if err != nil {
		return nil, err
	}
	answers := []Answer{}
	for _, pod := range cluster.Incoming {
		refused := Refusals{}
		for _, plugin := range plugins {
			told, err := ask(plugin, pod, nodes, nominated)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", plugin.Name(), err)
			}
			if len(told) > 0 {
				refused[plugin.Name()] = told
			}
		}
		scores, err := score(plugins, weights, pod, left(nodes, refused))
		if err != nil {
			return nil, err
		}
		answers = append(answers, Answer{refused, scores})
	}
	return answers, nil
}

func build(ctx context.Context, cluster *Cluster, snapshot *internalcache.Snapshot) ([]fwk.Plugin, error) {
	informerFactory, err := cluster.factory()
	if err != nil {
		return nil, err
	}
	csi := nodevolumelimits.NewCSIManager(informerFactory.Storage().V1().CSINodes().Lister())
	handle, err := frameworkruntime.NewFramework(ctx, nil, nil,
		frameworkruntime.WithSnapshotSharedLister(snapshot),
		frameworkruntime.WithInformerFactory(informerFactory),
		frameworkruntime.WithSharedCSIManager(csi),
		frameworkruntime.WithParallelism(1),
	)
	if err != nil {
		return nil, err
	}
	gates := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	var plugins []fwk.Plugin
	for _, kind := range kinds {
		plugin, err := kind.new(ctx, kind.args, handle, gates)
		if err != nil {
			return nil, err
		}
		plugins = append(plugins, plugin)
	}
	return plugins, cluster.fillIndexed(informerFactory)
}

// ask runs one plugin as the scheduling cycle would: PreFilter once, Filter on every node, and twice
// on a node with nominated pods.
func ask(plugin fwk.Plugin, pod *v1.Pod, nodes []fwk.NodeInfo, nominated map[string][]*v1.Pod) (map[string]string, error) {
	ctx, state := context.Background(), framework.NewCycleState()
	told := map[string]string{}
	only := map[string]bool(nil)
	if first, ok := plugin.(fwk.PreFilterPlugin); ok {
		result, status := first.PreFilter(ctx, state, pod, nodes)
		if status.IsSkip() {
			return told, nil
		}
		if !status.IsSuccess() {
			for _, node := range nodes {
				told[node.Node().Name] = words(status)
			}
			return told, nil
		}
		if !result.AllNodes() {
			only = map[string]bool{}
			for name := range result.NodeNames {
				only[name] = true
			}
		}
	}
	filter, ok := plugin.(fwk.FilterPlugin)
	if !ok {
		return told, nil
	}
	for _, node := range nodes {
		name := node.Node().Name
		if only != nil && !only[name] {
			told[name] = "not among the nodes of PreFilter"
			continue
		}
		status, err := twice(ctx, filter, state, pod, node, nominated[name])
		if err != nil {
			return nil, err
		}
		if !status.IsSuccess() {
			told[name] = words(status)
		}
	}
	return told, nil
}

func twice(ctx context.Context, filter fwk.FilterPlugin, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo, nominated []*v1.Pod) (*fwk.Status, error) {
	with, fuller, added := state.Clone(), node.Snapshot(), false
	for _, other := range nominated {
		if corev1helpers.PodPriority(other) < corev1helpers.PodPriority(pod) || other.UID == pod.UID {
			continue
		}
		info, err := framework.NewPodInfo(other)
		if err != nil {
			return nil, err
		}
		fuller.AddPodInfo(info)
		if first, ok := filter.(fwk.PreFilterPlugin); ok && first.PreFilterExtensions() != nil {
			status := first.PreFilterExtensions().AddPod(ctx, with, pod, info, fuller)
			if !status.IsSuccess() {
				return status, nil
			}
		}
		added = true
	}
	if added {
		if status := filter.Filter(ctx, with, pod, fuller); !status.IsSuccess() {
			return status, nil
		}
	}
	return filter.Filter(ctx, state, pod, node), nil
}

func words(status *fwk.Status) string {
	return status.Code().String() + ": " + strings.Join(status.Reasons(), "; ")
}
