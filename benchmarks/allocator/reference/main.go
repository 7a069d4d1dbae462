// The reference of the benchmark: kube-scheduler's own allocator, run as kube-scheduler runs it. One
// question a line on standard input, one answer a line on standard output, both JSON: `load` a
// cluster, then `run` decisions on it, as often as asked; the cluster changes with every decision.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

type question struct {
	Load *cluster `json:"load"`
	Run  int      `json:"run"`
	RSS  bool     `json:"rss"`
}

// answer holds the microseconds of each decision, how many found no node, how many nodes were asked
// and fitted in all; or the resident memory in KiB.
type answer struct {
	Micros   []float64 `json:"micros,omitempty"`
	Refused  int       `json:"refused"`
	Asked    int64     `json:"asked"`
	Feasible int64     `json:"feasible"`
	RSS      int       `json:"rssKiB,omitempty"`
	Error    string    `json:"error,omitempty"`
}

func main() {
	reader := bufio.NewReaderSize(os.Stdin, 1<<20)
	writer := json.NewEncoder(os.Stdout)
	var now *scheduler
	for {
		line, err := reader.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			fail(err)
		}
		if len(line) > 0 {
			told, problem := tell(line, &now)
			if problem != nil {
				told = &answer{Error: problem.Error()}
			}
			if failed := writer.Encode(told); failed != nil {
				fail(failed)
			}
		}
		if err != nil {
			return
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "reference:", err)
	os.Exit(1)
}

func tell(line []byte, now **scheduler) (*answer, error) {
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return nil, err
	}
	switch {
	case asked.Load != nil:
		*now = nil
		runtime.GC()
		made, err := newScheduler(asked.Load)
		*now = made
		return &answer{}, err
	case *now == nil:
		return nil, errors.New("no cluster is loaded")
	case asked.RSS:
		return resident()
	}
	return (*now).run(asked.Run)
}

// resident is what the process holds once everything that can be given back is.
func resident() (*answer, error) {
	debug.FreeOSMemory()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil, err
	}
	told := &answer{}
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "VmRSS:") {
			_, err = fmt.Sscanf(line, "VmRSS: %d kB", &told.RSS)
		}
	}
	return told, err
}
