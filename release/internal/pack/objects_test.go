package pack

import (
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// applied is what a cluster would get, each object decoded strictly.
type applied struct {
	workload *workload
	stateful *appsv1.StatefulSet
	services map[string]*corev1.Service
	budget   *policyv1.PodDisruptionBudget
	scaler   *autoscalingv2.HorizontalPodAutoscaler
	network  *networkingv1.NetworkPolicy
	monitor  *monitoring.ServiceMonitor
	config   *corev1.ConfigMap
	account  *corev1.ServiceAccount
	role     *rbacv1.ClusterRole
	binding  *rbacv1.ClusterRoleBinding
}

// workload is the Deployment, or the StatefulSet.
type workload struct {
	kind, name string
	selector   *metav1.LabelSelector
	replicas   *int32
	template   corev1.PodTemplateSpec
}

func decode(t *testing.T, texts map[string]string) applied {
	t.Helper()
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, monitoring.AddToScheme} {
		if err := add(types); err != nil {
			t.Fatal(err)
		}
	}
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, types, types, json.SerializerOptions{Yaml: true, Strict: true})
	a := applied{services: map[string]*corev1.Service{}}
	for name, text := range texts {
		if strings.HasSuffix(name, ".txt") {
			continue
		}
		for document := range strings.SplitSeq("\n"+text, "\n---\n") {
			if strings.TrimSpace(document) == "" {
				continue
			}
			object, _, err := decoder.Decode([]byte(document), nil, nil)
			if err != nil {
				t.Errorf("%s: %v\n%s", name, err, document)
				continue
			}
			a.add(t, object)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	return a
}

func (a *applied) add(t *testing.T, object runtime.Object) {
	t.Helper()
	switch o := object.(type) {
	case *appsv1.Deployment:
		a.workload = &workload{o.Kind, o.Name, o.Spec.Selector, o.Spec.Replicas, o.Spec.Template}
	case *appsv1.StatefulSet:
		a.workload, a.stateful = &workload{o.Kind, o.Name, o.Spec.Selector, o.Spec.Replicas, o.Spec.Template}, o
	case *corev1.Service:
		a.services[o.Name] = o
	case *policyv1.PodDisruptionBudget:
		a.budget = o
	case *autoscalingv2.HorizontalPodAutoscaler:
		a.scaler = o
	case *networkingv1.NetworkPolicy:
		a.network = o
	case *monitoring.ServiceMonitor:
		a.monitor = o
	case *corev1.ConfigMap:
		a.config = o
	case *corev1.ServiceAccount:
		a.account = o
	case *rbacv1.ClusterRole:
		a.role = o
	case *rbacv1.ClusterRoleBinding:
		a.binding = o
	default:
		t.Errorf("the chart makes a %T: check it here", o)
	}
}

func (a *applied) pod() labels.Set { return a.workload.template.Labels }

func (a *applied) port(port string) bool {
	return slices.ContainsFunc(a.workload.template.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool { return p.Name == port })
}

// TestObjectsAreThoseOfTheCluster: strict decoding knows each field of each type.
func TestObjectsAreThoseOfTheCluster(t *testing.T) {
	for name, text := range renderings(t) {
		a := decode(t, mustRender(t, text))
		if a.workload == nil || a.config == nil || len(a.services) < 2 {
			t.Errorf("%s: want a Deployment or StatefulSet, a ConfigMap and two Services", name)
		}
		if all := a.budget != nil && a.scaler != nil && a.network != nil && a.monitor != nil; name == "everything" && !all {
			t.Error("everything: want a PodDisruptionBudget, a HorizontalPodAutoscaler, a NetworkPolicy and a ServiceMonitor")
		}
		if name == "least" && (a.budget != nil || a.scaler != nil || a.network != nil || a.monitor != nil || a.port("grpc")) {
			t.Error("least: what is not enabled is made")
		}
	}
	decode(t, map[string]string{"deploy/kubernetes.yaml": readFile(t, deploy+"kubernetes.yaml")})
}

// TestRoleIsThatOfThePods: the binding gives the role to the account that the pods have.
func TestRoleIsThatOfThePods(t *testing.T) {
	a := decode(t, mustRender(t, everything))
	account := a.workload.template.Spec.ServiceAccountName
	if a.account.Name != account || a.binding.RoleRef.Name != a.role.Name || len(a.binding.Subjects) != 1 ||
		a.binding.Subjects[0].Name != account || a.binding.Subjects[0].Namespace != "default" {
		t.Errorf("pods have the account %q; %+v gives %+v", account, a.binding.Subjects, a.binding.RoleRef)
	}
	for _, r := range a.role.Rules {
		for _, verb := range r.Verbs {
			if !slices.Contains([]string{"get", "list", "watch", "create"}, verb) || verb == "create" && !strings.HasSuffix(r.Resources[0], "reviews") {
				t.Errorf("the role may %s %v", verb, r.Resources)
			}
		}
	}
	if b := decode(t, mustRender(t, readFile(t, deploy+"helm/kubernetes-values.yaml"))); b.account != nil || b.role != nil || b.binding != nil {
		t.Error("an account is made that nobody asked for")
	}
}

// TestSelectorsFindThePods: a selector that finds nothing is no error anywhere.
func TestSelectorsFindThePods(t *testing.T) {
	for name, text := range renderings(t) {
		a := decode(t, mustRender(t, text))
		selectors := map[string]*metav1.LabelSelector{a.workload.kind: a.workload.selector}
		for _, s := range a.services {
			selectors["Service "+s.Name] = metav1.SetAsLabelSelector(s.Spec.Selector)
			for _, p := range s.Spec.Ports {
				if !a.port(p.TargetPort.String()) {
					t.Errorf("%s: Service %s leads to port %s, which pods do not have", name, s.Name, &p.TargetPort)
				}
			}
		}
		if a.budget != nil {
			selectors["PodDisruptionBudget"] = a.budget.Spec.Selector
		}
		if a.network != nil {
			selectors["NetworkPolicy"] = &a.network.Spec.PodSelector
		}
		for _, c := range a.workload.template.Spec.TopologySpreadConstraints {
			selectors["topologySpreadConstraints"] = c.LabelSelector
		}
		for what, s := range selectors {
			if selector, err := metav1.LabelSelectorAsSelector(s); err != nil || selector.Empty() || !selector.Matches(a.pod()) {
				t.Errorf("%s: the selector %v of the %s does not find pods with %v (%v)", name, s, what, a.pod(), err)
			}
		}
	}
}

// TestPodsAreRestricted: a namespace with the strictest of the Pod Security Standards admits them.
func TestPodsAreRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for name, text := range renderings(t) {
		pod := decode(t, mustRender(t, text)).workload.template
		for _, r := range evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec) {
			if !r.Allowed {
				t.Errorf("%s: %s: %s", name, r.ForbiddenReason, r.ForbiddenDetail)
			}
		}
	}
}

// TestReplicasAreLeftToTheAutoscaler: a number in the Deployment would undo its work at each upgrade.
func TestReplicasAreLeftToTheAutoscaler(t *testing.T) {
	a := decode(t, mustRender(t, everything))
	for kind, text := range map[string]string{"Deployment": everything, "StatefulSet": renderings(t)["volumes"]} {
		a := decode(t, mustRender(t, text))
		if a.workload.replicas != nil {
			t.Errorf("the %s has replicas: %d, beside an autoscaler", kind, *a.workload.replicas)
		}
		if target := a.scaler.Spec.ScaleTargetRef; target.Kind != kind || a.workload.kind != kind || target.Name != a.workload.name {
			t.Errorf("the autoscaler is of %s %s, want %s %s", target.Kind, target.Name, kind, a.workload.name)
		}
	}
	if m := a.scaler.Spec.Metrics[0].Pods; m == nil || m.Metric.Name != "watchtide_subscribers" || m.Target.AverageValue.Value() != 10000 {
		t.Errorf("the autoscaler follows %+v: want watchtide_subscribers of pods, 10000 on average", m)
	}
	if r := decode(t, mustRender(t, renderings(t)["plain"])).workload.replicas; r == nil || *r != 2 {
		t.Errorf("without an autoscaler: replicas %v, want 2", r)
	}
}

// TestMonitorFindsTheOperationsListener, and no other Service leads there.
func TestMonitorFindsTheOperationsListener(t *testing.T) {
	a := decode(t, mustRender(t, everything))
	selector, err := metav1.LabelSelectorAsSelector(&a.monitor.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	endpoint := a.monitor.Spec.Endpoints[0]
	for name, s := range a.services {
		operations := slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.TargetPort == intstr.FromString("operations") })
		if found := selector.Matches(labels.Set(s.Labels)); found != operations || found && s.Spec.Ports[0].Name != endpoint.Port {
			t.Errorf("Service %s: leads to the operations listener: %t, found by the ServiceMonitor: %t", name, operations, found)
		}
		if operations && s.Spec.ClusterIP != corev1.ClusterIPNone {
			t.Errorf("Service %s: Prometheus wants each replica, and not one of them", name)
		}
	}
	if endpoint.Scheme == nil || endpoint.Scheme.String() != "https" || endpoint.Path != "/metrics" {
		t.Errorf("the endpoint is %+v: want https, as the configuration, and /metrics", endpoint)
	}
	for _, probe := range []*corev1.Probe{a.probes().StartupProbe, a.probes().ReadinessProbe, a.probes().LivenessProbe} {
		if probe.HTTPGet.Scheme != corev1.URISchemeHTTPS {
			t.Errorf("a probe asks with %s, want HTTPS, as the configuration", probe.HTTPGet.Scheme)
		}
	}
}

func (a *applied) probes() corev1.Container { return a.workload.template.Spec.Containers[0] }

// TestOperationsListenerIsForOperators: the policy names who may reach it, and an empty list of
// peers would stand for everybody.
func TestOperationsListenerIsForOperators(t *testing.T) {
	for text, want := range map[string]int{
		everything: 1,
		strings.Replace(everything, "networkPolicy: { ", "networkPolicy: { operators: [], ", 1): 0,
	} {
		rules := 0
		for _, r := range decode(t, mustRender(t, text)).network.Spec.Ingress {
			for _, p := range r.Ports {
				if p.Port.String() != "operations" {
					continue
				}
				rules++
				if len(r.From) == 0 || len(r.Ports) != 1 {
					t.Errorf("everybody may reach the operations listener: %+v", r)
				}
			}
		}
		if rules != want {
			t.Errorf("%d rules lead to the operations listener, want %d", rules, want)
		}
	}
}

// TestVolumes: each replica has one, which it may write to, where the configuration says.
func TestVolumes(t *testing.T) {
	a := decode(t, mustRender(t, durable+"replicas: 1\n"))
	if a.stateful == nil || a.services[a.stateful.Spec.ServiceName] == nil || *a.stateful.Spec.Replicas != 1 {
		t.Fatalf("%+v: want a StatefulSet of one pod, with a Service for its names", a.stateful)
	}
	claim := a.stateful.Spec.VolumeClaimTemplates[0]
	if size := claim.Spec.Resources.Requests[corev1.ResourceStorage]; size.Value() != 1<<30 || *claim.Spec.StorageClassName != "fast" {
		t.Errorf("the volume is %+v, want 1Gi of the class fast", claim.Spec)
	}
	pod := a.workload.template.Spec
	mounted := slices.ContainsFunc(pod.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool {
		return m.Name == claim.Name && m.MountPath == "/var/lib/watchtide" && !m.ReadOnly
	})
	if !mounted || *pod.SecurityContext.FSGroup != *pod.SecurityContext.RunAsGroup {
		t.Errorf("mounts %+v, group of the volume %d: want one that the gateway may write to", pod.Containers[0].VolumeMounts, *pod.SecurityContext.FSGroup)
	}
	if plain := decode(t, mustRender(t, renderings(t)["plain"])); plain.stateful != nil {
		t.Error("there are volumes without being asked for")
	}
}
