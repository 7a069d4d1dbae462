package main

import (
	"encoding/json"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/dynamic-resource-allocation/api/metadata/v1beta1"
	"k8s.io/dynamic-resource-allocation/devicemetadata"
)

// told is what a program in a container makes of a device metadata file (KEP-5304): the version
// that it read, and the content in the newest one.
type told struct {
	Version  string                  `json:"version"`
	Metadata *v1beta1.DeviceMetadata `json:"metadata"`
}

// readMetadata reads a file as Kubernetes' own library for such programs does, and validates it.
func readMetadata(file io.Reader, answer io.Writer) error {
	var found v1beta1.DeviceMetadata
	var invalid error
	var kind schema.GroupVersionKind
	err := devicemetadata.DecodeMetadataFromStream(
		json.NewDecoder(file), &found,
		devicemetadata.DecodeMetadataWithValidationResult(&invalid),
		devicemetadata.DecodeMetadataStoreGVKResult(&kind))
	if err != nil {
		return err
	}
	if invalid != nil {
		return fmt.Errorf("%s: %w", kind, invalid)
	}
	return json.NewEncoder(answer).Encode(told{Version: kind.Version, Metadata: &found})
}
