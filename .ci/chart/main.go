// Decodes the manifests on stdin strictly into the types of the Kubernetes API, KEDA and the Prometheus operator, and
// prints how many of each kind it read. An unknown or repeated field, or a value of another type, ends it with 1.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"

	keda "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/yaml"
)

// By version and kind.
var types = map[string]func() any{
	"apps/v1 Deployment":                      func() any { return &apps.Deployment{} },
	"autoscaling/v2 HorizontalPodAutoscaler":  func() any { return &autoscaling.HorizontalPodAutoscaler{} },
	"batch/v1 Job":                            func() any { return &batch.Job{} },
	"keda.sh/v1alpha1 ScaledObject":           func() any { return &keda.ScaledObject{} },
	"monitoring.coreos.com/v1 ServiceMonitor": func() any { return &monitoring.ServiceMonitor{} },
	"networking.k8s.io/v1 Ingress":            func() any { return &networking.Ingress{} },
	"networking.k8s.io/v1 NetworkPolicy":      func() any { return &networking.NetworkPolicy{} },
	"policy/v1 PodDisruptionBudget":           func() any { return &policy.PodDisruptionBudget{} },
	"v1 Service":                              func() any { return &core.Service{} },
}

// decode returns the version and kind of a manifest that fits its type; "" if the document is empty.
func decode(document []byte) (string, error) {
	var about meta.TypeMeta
	if err := strict.Unmarshal(document, &about); err != nil {
		return "", err
	}
	if about == (meta.TypeMeta{}) {
		return "", nil
	}
	name := about.APIVersion + " " + about.Kind
	made, known := types[name]
	if !known {
		return "", fmt.Errorf("no type for %s", name)
	}
	if err := strict.UnmarshalStrict(document, made()); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", name, err, document)
	}
	return name, nil
}

func run() error {
	counts := map[string]int{}
	documents := yaml.NewYAMLReader(bufio.NewReader(os.Stdin))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		name, err := decode(document)
		if err != nil {
			return err
		}
		if name != "" {
			counts[name]++
		}
	}
	var names []string
	for name := range counts {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Println(counts[name], name)
	}
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
