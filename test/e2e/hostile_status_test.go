package e2e_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	// touched is a file in the victim's container, to which its server and every command that is executed by an attack write.
	touched = "/shared/touched"
	// victimPort has no listener in the pods of the attacker: an answer on it comes from elsewhere.
	victimPort = 8080
	// kubeletPort is a port of the node on which kubelet listens.
	kubeletPort = 10250
	// attackLasts is how long an attack by status goes on when all parts of it are in place.
	attackLasts = 10 * time.Second
)

// victim is a pod whose server writes down each connection. Nobody connects to it: it has no probe and is in no Service.
func (s *fixture) victim() *corev1.Pod {
	return s.podOf("victim", shell("app", fmt.Sprintf("httpd -f -vvv -p %d 2>> %s & %s", victimPort, touched, obedient)))
}

// unharmed fails the test if the victim's container was stopped, if anything was executed in it, or if anything was sent to it.
func (s *fixture) unharmed(victim *corev1.Pod) {
	s.t.Helper()
	s.untouched(victim, "app")
	if got := s.exec(victim.Name, "app", "cat "+touched); got != "" {
		s.t.Errorf("executed in the container of another tenant, or sent to it:\n%.2000s", got)
	}
}

// writesStatuses lets the account default of a tenant write the status of pods of another namespace, in which it has the role edit.
func (s *fixture) writesStatuses(tenant, namespace string) {
	s.t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "status"}}
	role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods/status"}, Verbs: []string{"patch"}}}
	s.check(s.Create(s.t.Context(), role), "create role")
	s.bind(tenant, namespace, "ClusterRole", "edit")
	s.bind(tenant, namespace, "Role", role.Name)
}

// bind gives the account default of a tenant a role in a namespace.
func (s *fixture) bind(tenant, namespace, kind, role string) {
	s.t.Helper()
	s.check(s.Create(s.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: tenant, Name: "default"}},
	}), "bind %s", role)
}

// attacksByStatus write into the status of a running pod that a container, or an address, of somebody else is its own. Each line that they
// leave behind begins with the name of the attack.
func attacksByStatus() map[string]attack {
	id := func(victim *corev1.Pod) string {
		return fmt.Sprintf(`[{"op":"add","path":"/status/containerStatuses/0/containerID","value":%q}]`, status(victim, "app").ContainerID)
	}
	address := func(ip string) string {
		return fmt.Sprintf(`[{"op":"add","path":"/status/podIP","value":%q},{"op":"add","path":"/status/podIPs","value":[{"ip":%[1]q}]}]`, ip)
	}
	ofVictim := func(victim *corev1.Pod) string { return address(victim.Status.PodIP) }
	ofNode := func(victim *corev1.Pod) string { return address(victim.Status.HostIP) }
	linkLocal := func(*corev1.Pod) string { return address("169.254.169.254") }
	http := func(a attacker) corev1.ProbeHandler {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/" + a.word(), Port: intstr.FromInt32(victimPort)}}
	}
	tcp := func(port int32) func(attacker) corev1.ProbeHandler {
		return func(attacker) corev1.ProbeHandler {
			return corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(port)}}
		}
	}
	exec := func(a attacker) corev1.ProbeHandler { return command("sh", "-c", a.touches()) }
	grpc := func(attacker) corev1.ProbeHandler {
		return corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: victimPort}}
	}
	return map[string]attack{
		"container ID of the other, for a probe":         forged(id, plain, probes(exec, tcp(victimPort))),
		"container ID of the other, for a request":       forged(id, execHook, asks(true)),
		"container ID of the other, for its environment": forged(id, withMetadata, unready),
		"address of the other, for an HTTP probe":        forged(ofVictim, plain, probes(http, exec)),
		"address of the other, for a TCP probe":          forged(ofVictim, plain, probes(tcp(victimPort), exec)),
		"address of the other, for a gRPC probe":         forged(ofVictim, plain, probes(grpc, exec)),
		"address of the other, for a hook":               forged(ofVictim, httpHook, asks(false)),
		"address of the node, for a TCP probe":           forged(ofNode, plain, probes(tcp(kubeletPort), exec)),
		"link-local address, for an HTTP probe":          forged(linkLocal, plain, probes(http, exec)),
	}
}
