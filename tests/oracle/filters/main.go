// The program answers what the filter plugins of kube-scheduler say, and how those of its plugins score that
// say what a pod prefers: one cluster with pods to place a
// line on standard input, one answer a line on standard output, both JSON, until standard input ends.
// With an argument ("1.36") the feature gates are those of that version (KEP-4330).
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "filters:", err)
		os.Exit(1)
	}
}

func run(arguments []string, questions io.Reader, answers io.Writer) error {
	if len(arguments) > 0 {
		emulated, err := version.ParseMajorMinor(arguments[0])
		if err != nil {
			return err
		}
		if err := utilfeature.DefaultMutableFeatureGate.SetEmulationVersion(emulated); err != nil {
			return err
		}
	}
	metrics.InitMetrics()
	byPlugin, err := weights()
	if err != nil {
		return err
	}
	reader := bufio.NewReaderSize(questions, 1<<20)
	writer := json.NewEncoder(answers)
	for {
		line, err := reader.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(line) > 0 {
			answer, failed := judge(line, byPlugin)
			if failed != nil {
				return failed
			}
			if failed := writer.Encode(answer); failed != nil {
				return failed
			}
		}
		if err != nil {
			return nil
		}
	}
}
