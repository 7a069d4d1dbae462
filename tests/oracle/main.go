// The oracle answers what kube-scheduler's own allocator would do: one scenario a line on standard
// input, one answer a line on standard output, both JSON, until standard input ends. With the
// argument `metadata` it reads one device metadata file instead, with `selectors` it answers whether
// CEL selectors match devices, with `clusters` what every node of a whole cluster would do, and with
// `remains` what allocated claims leave.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	resourceapi "k8s.io/api/resource/v1"
)

// Answer holds Allocations, one a claim and in their order; or Unallocated, why there are none
// (empty where the allocator gives no reason); or Error.
type Answer struct {
	Allocations []resourceapi.AllocationResult `json:"allocations,omitempty"`
	Unallocated *string                        `json:"unallocated,omitempty"`
	Error       *Problem                       `json:"error,omitempty"`
}

// Problem is what was wrong and where: a path in the scenario, or "allocator".
type Problem struct {
	Where string `json:"where"`
	What  string `json:"what"`
}

func (p *Problem) Error() string { return p.Where + ": " + p.What }

func wrong(where, format string, values ...any) *Problem {
	return &Problem{Where: where, What: fmt.Sprintf(format, values...)}
}

func main() {
	work := serve
	modes := map[string]func(io.Reader, io.Writer) error{
		"clusters":  answerClusters,
		"metadata":  readMetadata,
		"remains":   answerRemains,
		"selectors": answerSelections,
	}
	if len(os.Args) == 2 && modes[os.Args[1]] != nil {
		work = modes[os.Args[1]]
	}
	if err := work(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

func serve(questions io.Reader, answers io.Writer) error {
	reader := bufio.NewReaderSize(questions, 1<<20)
	writer := json.NewEncoder(answers)
	oracle := newOracle()
	for {
		// A line has no limit: a machine of many devices fills megabytes.
		line, err := reader.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(line) > 0 {
			if failed := writer.Encode(oracle.answer(line)); failed != nil {
				return failed
			}
		}
		if err != nil {
			return nil
		}
	}
}
