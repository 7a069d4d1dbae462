package main

import (
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// Cluster is all that the plugins read, and the pods to place, each of them alone.
type Cluster struct {
	Nodes       []*v1.Node                      `json:"nodes"`
	Pods        []*v1.Pod                       `json:"pods"`
	Namespaces  []*v1.Namespace                 `json:"namespaces"`
	Claims      []*v1.PersistentVolumeClaim     `json:"claims"`
	Volumes     []*v1.PersistentVolume          `json:"volumes"`
	Classes     []*storagev1.StorageClass       `json:"classes"`
	CSINodes    []*storagev1.CSINode            `json:"csiNodes"`
	CSIDrivers  []*storagev1.CSIDriver          `json:"csiDrivers"`
	Capacities  []*storagev1.CSIStorageCapacity `json:"capacities"`
	Attachments []*storagev1.VolumeAttachment   `json:"attachments"`
	Incoming    []*v1.Pod                       `json:"incoming"`
}

// factory holds the listed objects without a server: nothing is ever started.
func (c *Cluster) factory() (informers.SharedInformerFactory, error) {
	made := informers.NewSharedInformerFactory(nil, 0)
	core, storage := made.Core().V1(), made.Storage().V1()
	for _, add := range []func() error{
		func() error { return fill(core.Nodes().Informer(), c.Nodes) },
		func() error { return fill(core.Namespaces().Informer(), c.Namespaces) },
		func() error { return fill(storage.StorageClasses().Informer(), c.Classes) },
		func() error { return fill(storage.CSINodes().Informer(), c.CSINodes) },
		func() error { return fill(storage.CSIDrivers().Informer(), c.CSIDrivers) },
		func() error { return fill(storage.CSIStorageCapacities().Informer(), c.Capacities) },
	} {
		if err := add(); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// fillIndexed adds the objects whose informers the plugins give an index of their own first.
func (c *Cluster) fillIndexed(made informers.SharedInformerFactory) error {
	core, storage := made.Core().V1(), made.Storage().V1()
	if err := fill(core.PersistentVolumeClaims().Informer(), c.Claims); err != nil {
		return err
	}
	if err := fill(core.PersistentVolumes().Informer(), c.Volumes); err != nil {
		return err
	}
	return fill(storage.VolumeAttachments().Informer(), c.Attachments)
}

func fill[T any](informer cache.SharedIndexInformer, objects []T) error {
	for _, object := range objects {
		if err := informer.GetStore().Add(object); err != nil {
			return err
		}
	}
	return nil
}

// placed are the pods of nodes, nominated those of which a preemption made room on a node.
func (c *Cluster) placed() (placed []*v1.Pod, nominated map[string][]*v1.Pod) {
	nominated = map[string][]*v1.Pod{}
	for _, pod := range c.Pods {
		if pod.Spec.NodeName != "" {
			placed = append(placed, pod)
		} else if name := pod.Status.NominatedNodeName; name != "" {
			nominated[name] = append(nominated[name], pod)
		}
	}
	return placed, nominated
}
