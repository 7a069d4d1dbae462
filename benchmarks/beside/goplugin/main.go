// The least DRA driver in Go, on upstream's own helper: what ours is measured beside.
//
// It does what every driver has to: it publishes a slice, and for a claim it keeps a record that
// outlives the process and writes a CDI spec. As the drivers that are built on this helper do, it
// keeps all records in one file, which is written whole, with fsync, at every change. It touches no
// hardware, has no locks but one, no metrics, no events and no health: what it takes is a floor.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

type settings struct {
	kubeconfig, driver, node, plugins, registry, cdi string
	gpus                                             int
}

type prepared struct {
	Namespace, Name string
	Devices         []kubeletplugin.Device
}

// driver answers the helper; records are by the claim's UID.
type driver struct {
	settings
	mutex   sync.Mutex
	records map[types.UID]prepared
}

func main() {
	var chosen settings
	flag.StringVar(&chosen.kubeconfig, "kubeconfig", "", "where the API server is")
	flag.StringVar(&chosen.driver, "driver", "", "the driver's name")
	flag.StringVar(&chosen.node, "node", "", "the node's name")
	flag.StringVar(&chosen.plugins, "plugin-dir", "", "for the socket and the records")
	flag.StringVar(&chosen.registry, "registry-dir", "", "where the kubelet looks for plugins")
	flag.StringVar(&chosen.cdi, "cdi-dir", "", "for CDI specs")
	flag.IntVar(&chosen.gpus, "gpus", 8, "how many devices to publish")
	flag.Parse()
	if err := run(chosen); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(chosen settings) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", chosen.kubeconfig)
	if err != nil {
		return err
	}
	// The client's own bucket, 5 requests a second, would be what is measured.
	config.QPS, config.Burst = 2000, 4000
	// The stand-in of the API server reads and writes JSON alone.
	config.ContentType = "application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	made := &driver{settings: chosen, records: map[types.UID]prepared{}}
	if err := made.recall(); err != nil {
		return err
	}
	helper, err := kubeletplugin.Start(ctx, made,
		kubeletplugin.KubeClient(client),
		kubeletplugin.DriverName(chosen.driver),
		kubeletplugin.NodeName(chosen.node),
		kubeletplugin.PluginDataDirectoryPath(chosen.plugins),
		kubeletplugin.RegistrarDirectoryPath(chosen.registry),
		kubeletplugin.HealthService(false),
	)
	if err != nil {
		return err
	}
	defer helper.Stop()
	if err := helper.PublishResources(ctx, made.resources()); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// resources are GPUs described by twelve attributes and a capacity, as those of NVIDIA's driver.
func (d *driver) resources() resourceslice.DriverResources {
	devices := make([]resourceapi.Device, d.gpus)
	for number := range devices {
		attributes := map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{}
		for at := range 12 {
			value := fmt.Sprintf("value-%d-%d", at, number)
			name := resourceapi.QualifiedName(fmt.Sprintf("attribute%d", at))
			attributes[name] = resourceapi.DeviceAttribute{StringValue: &value}
		}
		devices[number] = resourceapi.Device{Name: fmt.Sprintf("gpu-%d", number), Attributes: attributes}
	}
	slices := []resourceslice.Slice{{Devices: devices}}
	return resourceslice.DriverResources{
		Pools: map[string]resourceslice.Pool{d.node: {Slices: slices}},
	}
}

func (d *driver) PrepareResourceClaims(
	_ context.Context, claims []*resourceapi.ResourceClaim,
) (map[types.UID]kubeletplugin.PrepareResult, error) {
	found := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		devices, err := d.prepare(claim)
		found[claim.UID] = kubeletplugin.PrepareResult{Devices: devices, Err: err}
	}
	return found, nil
}

func (d *driver) prepare(claim *resourceapi.ResourceClaim) ([]kubeletplugin.Device, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if known, there := d.records[claim.UID]; there {
		return known.Devices, nil
	}
	if claim.Status.Allocation == nil {
		return nil, fmt.Errorf("claim %s/%s has no allocation", claim.Namespace, claim.Name)
	}
	var devices []kubeletplugin.Device
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver != d.driver {
			continue
		}
		id := fmt.Sprintf("%s/gpu=%s-%s", d.driver, claim.UID, result.Device)
		devices = append(devices, kubeletplugin.Device{
			Requests: []string{result.Request}, PoolName: result.Pool,
			DeviceName: result.Device, CDIDeviceIDs: []string{id},
		})
	}
	if err := d.writeSpec(claim.UID, devices); err != nil {
		return nil, err
	}
	d.records[claim.UID] = prepared{claim.Namespace, claim.Name, devices}
	return devices, d.remember()
}

func (d *driver) UnprepareResourceClaims(
	_ context.Context, claims []kubeletplugin.NamespacedObject,
) (map[types.UID]error, error) {
	found := map[types.UID]error{}
	for _, claim := range claims {
		found[claim.UID] = d.unprepare(claim.UID)
	}
	return found, nil
}

func (d *driver) unprepare(uid types.UID) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if _, there := d.records[uid]; !there {
		return nil
	}
	if err := os.Remove(d.spec(uid)); err != nil && !os.IsNotExist(err) {
		return err
	}
	delete(d.records, uid)
	return d.remember()
}

func (d *driver) HandleError(_ context.Context, err error, msg string) {
	fmt.Fprintln(os.Stderr, msg, err)
}

func (d *driver) WatchHealthStatus(
	ctx context.Context, _ chan<- kubeletplugin.DeviceHealthReport,
) error {
	<-ctx.Done()
	return nil
}

func (d *driver) spec(uid types.UID) string {
	return filepath.Join(d.cdi, fmt.Sprintf("%s-%s.json", d.driver, uid))
}

// writeSpec appears whole, as the CDI library's: a rename without fsync.
func (d *driver) writeSpec(uid types.UID, devices []kubeletplugin.Device) error {
	edits := make([]map[string]any, len(devices))
	for at, device := range devices {
		node := map[string]any{"path": "/dev/null"}
		name := fmt.Sprintf("%s-%s", uid, device.DeviceName)
		edits[at] = map[string]any{
			"name":           name,
			"containerEdits": map[string]any{"deviceNodes": []any{node}, "env": []string{"GPU=" + name}},
		}
	}
	kind := d.driver + "/gpu"
	text, err := json.Marshal(map[string]any{"cdiVersion": "0.6.0", "kind": kind, "devices": edits})
	if err != nil {
		return err
	}
	part := d.spec(uid) + ".part"
	if err := os.WriteFile(part, text, 0o644); err != nil {
		return err
	}
	return os.Rename(part, d.spec(uid))
}

func (d *driver) recordsFile() string { return filepath.Join(d.plugins, "records.json") }

// remember writes every record, as the kubelet's checkpoint manager does: fsync, then a rename.
func (d *driver) remember() error {
	text, err := json.Marshal(d.records)
	if err != nil {
		return err
	}
	part, err := os.CreateTemp(d.plugins, "records-")
	if err != nil {
		return err
	}
	defer part.Close()
	if _, err := part.Write(text); err != nil {
		return err
	}
	if err := part.Sync(); err != nil {
		return err
	}
	return os.Rename(part.Name(), d.recordsFile())
}

func (d *driver) recall() error {
	text, err := os.ReadFile(d.recordsFile())
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, &d.records)
}
