package main

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Scores are, of one pod, the weighted scores that each plugin gives to the nodes that no plugin refuses.
type Scores map[string]map[string]int64

// scored are the plugins whose scores are asked for: those that say what the pod prefers.
var scored = map[string]bool{
	"TaintToleration": true, "NodeAffinity": true, "PodTopologySpread": true, "InterPodAffinity": true,
}

// weights are those of kube-scheduler's default profile.
func weights() (map[string]int64, error) {
	configuration, err := latest.Default()
	if err != nil {
		return nil, err
	}
	found := map[string]int64{}
	for _, plugin := range configuration.Profiles[0].Plugins.MultiPoint.Enabled {
		if scored[plugin.Name] {
			found[plugin.Name] = int64(plugin.Weight)
		}
	}
	return found, nil
}

func left(nodes []fwk.NodeInfo, refused Refusals) []fwk.NodeInfo {
	kept := []fwk.NodeInfo{}
	for _, node := range nodes {
		fits := true
		for _, told := range refused {
			if _, refuses := told[node.Node().Name]; refuses {
				fits = false
			}
		}
		if fits {
			kept = append(kept, node)
		}
	}
	return kept
}

func score(plugins []fwk.Plugin, weights map[string]int64, pod *v1.Pod, nodes []fwk.NodeInfo) (Scores, error) {
	scores := Scores{}
	for _, plugin := range plugins {
		scorer, ok := plugin.(fwk.ScorePlugin)
		if !ok || !scored[plugin.Name()] || len(nodes) == 0 {
			continue
		}
		list, err := normalized(scorer, pod, nodes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", plugin.Name(), err)
		}
		if list == nil {
			continue
		}
		weighted := map[string]int64{}
		for _, entry := range list {
			weighted[entry.Name] = entry.Score * weights[plugin.Name()]
		}
		scores[plugin.Name()] = weighted
	}
	return scores, nil
}

// normalized runs one plugin as the scheduling cycle would: PreScore, Score of every node, NormalizeScore;
// nil where the plugin is skipped.
func normalized(scorer fwk.ScorePlugin, pod *v1.Pod, nodes []fwk.NodeInfo) (fwk.NodeScoreList, error) {
	ctx, state := context.Background(), framework.NewCycleState()
	if first, ok := scorer.(fwk.PreScorePlugin); ok {
		status := first.PreScore(ctx, state, pod, nodes)
		if status.IsSkip() {
			return nil, nil
		}
		if !status.IsSuccess() {
			return nil, status.AsError()
		}
	}
	list := make(fwk.NodeScoreList, len(nodes))
	for index, node := range nodes {
		value, status := scorer.Score(ctx, state, pod, node)
		if !status.IsSuccess() {
			return nil, status.AsError()
		}
		list[index] = fwk.NodeScore{Name: node.Node().Name, Score: value}
	}
	if extensions := scorer.ScoreExtensions(); extensions != nil {
		if status := extensions.NormalizeScore(ctx, state, pod, list); !status.IsSuccess() {
			return nil, status.AsError()
		}
	}
	return list, nil
}
