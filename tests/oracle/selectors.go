package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

// selection is one question: does this selector match this device, which is of `driver`?
type selection struct {
	Expression string             `json:"expression"`
	Driver     string             `json:"driver"`
	Device     resourceapi.Device `json:"device"`
}

// verdict is what kube-scheduler's CEL says: Refused, why the expression does not compile, or why
// the API server takes none that may cost as much; Failed, the error at run time; or whether it
// Matches. Cost is the most that it may cost.
type verdict struct {
	Refused string `json:"refused,omitempty"`
	Failed  string `json:"failed,omitempty"`
	Matches *bool  `json:"matches,omitempty"`
	Cost    uint64 `json:"cost"`
}

// answerSelections reads a question a line and writes a verdict a line, until the input ends.
func answerSelections(questions io.Reader, answers io.Writer) error {
	reader := bufio.NewReaderSize(questions, 1<<16)
	writer := json.NewEncoder(answers)
	features := cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true}
	for {
		line, err := reader.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(line) > 0 {
			var asked selection
			if failed := json.Unmarshal(line, &asked); failed != nil {
				return failed
			}
			if failed := writer.Encode(judged(features, asked)); failed != nil {
				return failed
			}
		}
		if err != nil {
			return nil
		}
	}
}

func judged(features cel.Features, asked selection) verdict {
	program := cel.GetCompiler(features).CompileCELExpression(asked.Expression, cel.Options{})
	if program.Error != nil {
		return verdict{Refused: program.Error.Error()}
	}
	if program.MaxCost > resourceapi.CELSelectorExpressionMaxCost {
		return verdict{Refused: "too complex, exceeds cost limit", Cost: program.MaxCost}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	matches, _, err := program.DeviceMatches(ctx, cel.Device{
		Driver:                   asked.Driver,
		AllowMultipleAllocations: asked.Device.AllowMultipleAllocations,
		Attributes:               asked.Device.Attributes,
		Capacity:                 asked.Device.Capacity,
	})
	if err != nil {
		return verdict{Failed: err.Error(), Cost: program.MaxCost}
	}
	return verdict{Matches: &matches, Cost: program.MaxCost}
}
