{{/* Parts that templates share. The names of objects are fixed: admission policies and the programs refer to them, and the
CRDs and webhooks apply to the whole cluster, so a cluster has one installation. */}}

{{- define "refit.manager" -}}
{{- if and .Values.manager.enabled (ne .Values.openkruise.mode "daemonOnly") }}true{{ end -}}
{{- end }}

{{/* Whether refit-manager does what .name in manager.features says; auto leaves it to a kruise-manager beside. */}}
{{- define "refit.feature" -}}
{{- $value := index .root.Values.manager.features .name | toString -}}
{{- $wanted := or (eq $value "true") (and (eq $value "auto") (eq .root.Values.openkruise.mode "none")) -}}
{{- if and $wanted (include "refit.manager" .root) }}true{{ end -}}
{{- end }}

{{- define "refit.requests" -}}{{ include "refit.feature" (dict "root" . "name" "containerRecreateRequests") }}{{- end }}
{{- define "refit.podProbes" -}}{{ include "refit.feature" (dict "root" . "name" "podProbes") }}{{- end }}
{{- define "refit.images" -}}{{ include "refit.feature" (dict "root" . "name" "images") }}{{- end }}
{{- define "refit.sidecarSets" -}}{{ include "refit.feature" (dict "root" . "name" "sidecarSets") }}{{- end }}
{{- define "refit.restartRollouts" -}}{{ include "refit.feature" (dict "root" . "name" "restartRollouts") }}{{- end }}
{{- define "refit.inPlaceUpdates" -}}{{ include "refit.feature" (dict "root" . "name" "inPlaceUpdates") }}{{- end }}

{{/* What holds workloads: "policy" where the API server serves MutatingAdmissionPolicy in v1, which it does from Kubernetes 1.36 on,
otherwise "webhook"; empty for nothing. */}}
{{- define "refit.hold" -}}
{{- $value := .Values.policies.hold -}}
{{- if eq $value "auto" -}}
{{- $value = ternary "policy" "webhook" (.Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy") -}}
{{- end -}}
{{- if and (include "refit.inPlaceUpdates" .) (ne $value "none") }}{{ $value }}{{ end -}}
{{- end }}

{{/* Writes of the workloads that can be held, where the object has the label, or had it before. Operations follow. */}}
{{- define "refit.labelled" -}}
matchConstraints:
  objectSelector: {matchExpressions: [{key: {{ . }}, operator: Exists}]}
  resourceRules:
  - apiGroups: [apps]
    apiVersions: [v1]
    resources: [deployments, statefulsets, daemonsets]
{{- end }}

{{/* How a workload is held. */}}
{{- define "refit.holdMutations" -}}
variables:
- name: partition
  expression: "request.kind.kind == 'StatefulSet' ? object.spec.updateStrategy.?rollingUpdate.?partition.orValue(0) : 0"
# The owner's values stay in the object: a partition is what is missing to the largest number, and rollingUpdate of a DaemonSet
# is allowed beside OnDelete. A partition of at least 1000000000 is a hold already.
mutations:
- patchType: JSONPatch
  jsonPatch:
    expression: >-
      [has(object.metadata.labels) ?
      JSONPatch{op: 'add', path: '/metadata/labels/refit.dev~1held', value: 'true'} :
      JSONPatch{op: 'add', path: '/metadata/labels', value: {'refit.dev/held': 'true'}}] +
      (request.kind.kind == 'Deployment' ? [JSONPatch{op: 'add', path: '/spec/paused', value: true}] :
      request.kind.kind == 'DaemonSet' ? [JSONPatch{op: 'add', path: '/spec/updateStrategy/type', value: 'OnDelete'}] :
      variables.partition >= 1000000000 ? [] :
      [has(object.spec.updateStrategy.rollingUpdate) ?
      JSONPatch{op: 'add', path: '/spec/updateStrategy/rollingUpdate/partition', value: 2147483647 - variables.partition} :
      JSONPatch{op: 'add', path: '/spec/updateStrategy/rollingUpdate', value: {'partition': 2147483647 - variables.partition}}])
{{- end }}

{{/* Whether a write to a workload is held. With "params": whether the InPlaceUpdatePolicy asks for it; with "label": whether the label of
refit-manager does; without: whether one could.
One condition, since the API server evaluates all of several, and && ends with the first that is false. In this order: which
workload; a StatefulSet or DaemonSet whose owner has chosen OnDelete (a held DaemonSet has rollingUpdate beside it); what is held;
what begins to be: a paused Deployment is resumed, a partition is lowered, a strategy is changed from OnDelete, or the template is
changed. */}}
{{- define "refit.holds" -}}
{{- if eq . "label" -}}
oldObject.metadata.?labels[?'refit.dev/hold-uid'].orValue('') == oldObject.metadata.?uid.orValue('-') &&
{{ else if eq . "params" -}}
params.spec.targetRef.name == request.name && params.spec.targetRef.kind == request.kind.kind &&
params.spec.?holdPolicy.orValue('WhileUpdating') == 'WhileUpdating' &&
params.?status.?conditions.orValue([]).exists(c, c.type == 'Accepted' && c.status == 'True') &&
{{ end -}}
!request.userInfo.username.matches('^system:serviceaccount:[^:]+:refit-manager$') &&
(request.kind.kind == 'Deployment' || object.spec.updateStrategy.type == 'RollingUpdate' || has(object.spec.updateStrategy.rollingUpdate)) &&
(oldObject.metadata.?labels[?'refit.dev/held'].orValue('') == 'true' ||
{{ if eq . "params" -}}
!has(params.metadata.deletionTimestamp) &&
{{ end -}}
(!object.spec.template.?metadata.?annotations[?'kubectl.kubernetes.io/restartedAt'].hasValue() ||
object.spec.template.metadata.annotations['kubectl.kubernetes.io/restartedAt'] ==
oldObject.spec.template.?metadata.?annotations[?'kubectl.kubernetes.io/restartedAt'].orValue('')) &&
(request.kind.kind == 'Deployment' ?
!object.spec.?paused.orValue(false) && (oldObject.spec.?paused.orValue(false) || object.spec.template != oldObject.spec.template) :
object.spec.updateStrategy.type == 'RollingUpdate' && (oldObject.spec.updateStrategy.type == 'OnDelete' ||
object.spec.updateStrategy.?rollingUpdate.?partition.orValue(0) < oldObject.spec.updateStrategy.?rollingUpdate.?partition.orValue(0) ||
object.spec.template != oldObject.spec.template)))
{{- end }}

{{/* Which namespaces get readiness gates, "all" or "labelled"; empty where nothing of Refit would open them. */}}
{{- define "refit.readinessGates" -}}
{{- if and (include "refit.requests" .) (ne .Values.manager.features.readinessGates "none") }}{{ .Values.manager.features.readinessGates }}{{ end -}}
{{- end }}

{{/* Which pods are annotated with their probes at their creation, "tolerating" or "all"; empty for none. */}}
{{- define "refit.serverlessProbes" -}}
{{- if and (include "refit.podProbes" .) (ne .Values.manager.features.serverlessProbes "none") }}{{ .Values.manager.features.serverlessProbes }}{{ end -}}
{{- end }}

{{/* Whether there is a MutatingWebhookConfiguration refit-manager. */}}
{{- define "refit.mainWebhooks" -}}
{{- if or (include "refit.requests" .) (include "refit.restartRollouts" .) (include "refit.serverlessProbes" .) }}true{{ end -}}
{{- end }}

{{/* The namespaces for whose pods no webhook is called when they are created: what the cluster and the webhooks need to run, and the user's. */}}
{{- define "refit.excludedNamespaces" -}}
[kube-system, {{ .Release.Namespace }}{{ range .Values.webhook.excludedNamespaces }}, {{ quote . }}{{ end }}]
{{- end }}

{{- define "refit.configChanges" -}}{{ if include "refit.restartRollouts" . }}{{ include "refit.feature" (dict "root" . "name" "configChanges") }}{{ end }}{{- end }}
{{- define "refit.secretChanges" -}}{{ if include "refit.configChanges" . }}{{ include "refit.feature" (dict "root" . "name" "secretChanges") }}{{ end }}{{- end }}

{{/* Where OpenKruise is installed, the namespace of the pull secrets is its own. */}}
{{- define "refit.pullSecretNamespaceCreate" -}}
{{- $value := toString .Values.pullSecretNamespace.create -}}
{{- if or (eq $value "true") (and (eq $value "auto") (eq .Values.openkruise.mode "none")) }}true{{ end -}}
{{- end }}

{{/* The image of program .name, with what .image says differently for it. A released chart has files/digests.yaml, with the digests of the
images of its version: a file and not values, which helm upgrade --reuse-values would take from the version before. */}}
{{- define "refit.image" -}}
{{- $all := .root.Values.image -}}
{{- $repository := .image.repository | default (list $all.registry $all.repository .name | compact | join "/") -}}
{{- $tag := .image.tag | default $all.tag -}}
{{- $digest := .image.digest -}}
{{- if and $all.pinDigests (not $digest) (not $tag) }}{{ $digest = get (.root.Files.Get "files/digests.yaml" | fromYaml) .name }}{{ end -}}
{{- $repository }}:{{ $tag | default .root.Chart.AppVersion }}
{{- with $digest }}@{{ . }}{{ end -}}
{{- end }}

{{/* Refuses labels of pods by which the selector of their workload does not find them. */}}
{{- define "refit.checkLabels" -}}
{{- $key := "app.kubernetes.io/name" -}}
{{- range $value, $labels := dict "commonLabels" .root.Values.commonLabels (print .of ".podLabels") (index .root.Values .of "podLabels") }}
{{- if hasKey ($labels | default dict) $key }}{{ fail (printf "%s: the label %s is set by the chart, and pods are found by it" $value $key) }}{{ end -}}
{{- end -}}
{{- end }}

{{/* Refuses a port for two listeners of refit-manager. Without metrics their port is not used. */}}
{{- define "refit.checkPorts" -}}
{{- $ports := .Values.manager.ports -}}
{{- $used := list (int $ports.webhook) (int $ports.health) -}}
{{- if .Values.manager.metrics }}{{ $used = append $used (int $ports.metrics) }}{{ end -}}
{{- if ne (len $used) (len (uniq $used)) }}{{ fail "manager.ports: webhook, health and metrics have to be different ports" }}{{ end -}}
{{- end }}

{{- define "refit.managerImage" -}}{{ include "refit.image" (dict "root" . "name" "refit-manager" "image" .Values.manager.image) }}{{- end }}

{{/* Labels of all objects: the usual ones of charts, and the user's. Pods have only the user's, since others would replace them at each version. */}}
{{- define "refit.objectLabels" -}}
{{- $labels := dict -}}
{{- if .Values.standardLabels -}}
{{- $chart := print .Chart.Name "-" .Chart.Version | replace "+" "_" | trunc 63 | trimAll "-._" -}}
{{- $labels = dict "helm.sh/chart" $chart "app.kubernetes.io/instance" .Release.Name "app.kubernetes.io/managed-by" .Release.Service -}}
{{- $_ := set $labels "app.kubernetes.io/version" (.Chart.AppVersion | replace "+" "_" | trunc 63 | trimAll "-._") -}}
{{- end -}}
{{- merge (dict) .Values.commonLabels $labels | toYaml -}}
{{- end }}

{{/* Annotations of all objects: for metadata without annotations, for metadata that has some, and both together. */}}
{{- define "refit.annotations" -}}
{{- include "refit.annotationsWith" (dict "root" . "own" dict) }}
{{- end }}

{{- define "refit.moreAnnotations" -}}
{{- with .Values.commonAnnotations }}
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- end }}

{{- define "refit.annotationsWith" -}}
{{- with merge (dict) (.own | default dict) (.root.Values.commonAnnotations | default dict) }}
  annotations:
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- end }}

{{/* For metadata without labels, with and without the annotations, and for metadata that has labels. */}}
{{- define "refit.labels" -}}
{{- include "refit.onlyLabels" . }}
{{- include "refit.annotations" . }}
{{- end }}

{{- define "refit.onlyLabels" -}}
{{- with include "refit.objectLabels" . | fromYaml }}
  labels:
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- end }}

{{- define "refit.moreLabels" -}}
{{- with include "refit.objectLabels" . | fromYaml }}
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- end }}

{{/* For ClusterRoles that the built-in roles edit and admin take in, and view. */}}
{{- define "refit.editLabels" -}}
{{- if .Values.rbac.aggregate }}
  labels:
    rbac.authorization.k8s.io/aggregate-to-edit: "true"
    rbac.authorization.k8s.io/aggregate-to-admin: "true"
    {{- include "refit.moreLabels" . }}
    {{- include "refit.annotations" . }}
{{- else }}
{{- include "refit.labels" . }}
{{- end }}
{{- end }}

{{- define "refit.viewLabels" -}}
{{- if .Values.rbac.aggregate }}
  labels:
    rbac.authorization.k8s.io/aggregate-to-view: "true"
    {{- include "refit.moreLabels" . }}
    {{- include "refit.annotations" . }}
{{- else }}
{{- include "refit.labels" . }}
{{- end }}
{{- end }}

{{/* Arguments of both programs. */}}
{{- define "refit.logArgs" -}}
{{- if ne .Values.log.format "text" }}
- --log-format={{ .Values.log.format }}
{{- end }}
{{- if ne .Values.log.level "info" }}
- --log-level={{ .Values.log.level }}
{{- end }}
{{- end }}

{{/* The MutatingWebhookConfigurations that there are, by name. */}}
{{- define "refit.webhookConfigurations" -}}
{{- $names := list -}}
{{- if include "refit.mainWebhooks" . }}{{ $names = append $names "refit-manager" }}{{ end -}}
{{- if include "refit.sidecarSets" . }}{{ $names = append $names "refit-manager-sidecarsets" }}{{ end -}}
{{- if eq (include "refit.hold" .) "webhook" }}{{ $names = append $names "refit-manager-workloads" }}{{ end -}}
{{- join "," $names -}}
{{- end }}

{{- define "refit.webhookSecret" -}}
{{- if eq .Values.webhook.certificates.mode "existing" }}{{ .Values.webhook.certificates.existing.secretName }}{{ else }}refit-manager-webhook-cert{{ end -}}
{{- end }}

{{/* caBundle of a webhook, where this chart knows it. */}}
{{- define "refit.caBundle" -}}
{{- if eq .Values.webhook.certificates.mode "existing" }}
    caBundle: {{ required "webhook.certificates.existing.caBundle is needed: the API server has to know the authority of the certificate" .Values.webhook.certificates.existing.caBundle }}
{{- end }}
{{- end }}

{{/* cert-manager writes the caBundle of configurations with this annotation. */}}
{{- define "refit.webhookAnnotations" -}}
{{- $own := dict -}}
{{- if eq .Values.webhook.certificates.mode "certManager" }}{{ $own = dict "cert-manager.io/inject-ca-from" (print .Release.Namespace "/refit-manager-webhook") }}{{ end -}}
{{- include "refit.annotationsWith" (dict "root" . "own" $own) }}
{{- end }}

{{/* The directory of the node with the runtime's socket, and where the daemon looks for it below /hostvarrun. */}}
{{- define "refit.socketDir" -}}
{{- $known := dict "containerd" "/run/containerd" "crio" "/run/crio" "k3s" "/run/k3s/containerd" "docker" "/run/cri-dockerd.sock" -}}
{{- .Values.daemon.socketDir | default (get $known .Values.daemon.runtime) -}}
{{- end }}

{{- define "refit.socketMount" -}}
{{- $known := dict "containerd" "containerd" "crio" "crio" "k3s" "containerd" "docker" "cri-dockerd.sock" -}}
{{- if and (eq .Values.daemon.runtime "docker") .Values.daemon.socketDir }}/hostvarrun/cri-dockerd{{ else }}/hostvarrun/{{ get $known .Values.daemon.runtime }}{{ end -}}
{{- end }}

{{/* Arguments of refit-manager: what differs from the program's own defaults. */}}
{{- define "refit.managerArgs" -}}
{{- if .Values.manager.metrics }}
- --metrics-addr=:{{ .Values.manager.ports.metrics }} # HTTPS, for tokens that may get /metrics
{{- else }}
- --metrics-addr=0
{{- end }}
{{- if ne (int .Values.manager.ports.webhook) 9443 }}
- --webhook-port={{ .Values.manager.ports.webhook }}
{{- end }}
{{- if ne (int .Values.manager.ports.health) 8081 }}
- --health-addr=:{{ .Values.manager.ports.health }}
{{- end }}
{{- if ne (include "refit.webhookSecret" .) "refit-manager-webhook-cert" }}
- --cert-secret={{ include "refit.webhookSecret" . }}
{{- end }}
{{- if not .Values.webhook.callers.refusePods }}
- --webhook-refuse-pods=false
{{- else if ne (join "," .Values.webhook.callers.allowedNamespaces) "kube-system" }}
- --webhook-allowed-namespaces={{ join "," .Values.webhook.callers.allowedNamespaces }}
{{- end }}
{{- with .Values.webhook.excludedNamespaces }}
- --webhook-excluded-namespaces={{ join "," . }}
{{- end }}
{{- if .Values.webhook.callers.clientCA.configMapName }}
- --webhook-client-ca-file=/etc/refit/client-ca/{{ .Values.webhook.callers.clientCA.key }}
{{- end }}
{{- if ne .Values.openkruise.namespace "kruise-system" }}
- --openkruise-namespace={{ .Values.openkruise.namespace }}
{{- end }}
{{- if and .Values.openkruise.revisions (include "refit.sidecarSets" .) }}
- --openkruise-revisions
{{- end }}
{{- if ne .Values.pullSecretNamespace.name "kruise-daemon-config" }}
- --pull-secret-namespace={{ .Values.pullSecretNamespace.name }}
{{- end }}
{{- if not (include "refit.requests" .) }}
- --container-recreate-requests=false
{{- end }}
{{- if and (include "refit.requests" .) (not (include "refit.readinessGates" .)) }}
- --readiness-gates=false
{{- end }}
{{- if not (include "refit.podProbes" .) }}
- --pod-probes=false
{{- end }}
{{- if and (include "refit.podProbes" .) (not (include "refit.serverlessProbes" .)) }}
- --serverless-probes=false
{{- end }}
{{- if not (include "refit.images" .) }}
- --images=false
{{- end }}
{{- if not (include "refit.sidecarSets" .) }}
- --sidecar-sets=false
- --sidecarset-rollout=false
{{- end }}
{{- if not (include "refit.restartRollouts" .) }}
- --restart-rollouts=false
{{- end }}
{{- if not (include "refit.inPlaceUpdates" .) }}
- --in-place-updates=false
{{- else if ne (include "refit.hold" .) "webhook" }}
- --hold-webhook=false
{{- end }}
{{- if not (include "refit.configChanges" .) }}
- --restart-on-config-change=false
{{- end }}
{{- if include "refit.secretChanges" . }}
- --restart-on-secret-change
{{- end }}
{{- with .Values.tracing.endpoint }}
- --tracing-endpoint={{ . }}
- --tracing-sampling-rate={{ $.Values.tracing.samplingRatePerMillion | int64 }}
{{- end }}
{{- include "refit.logArgs" . }}
{{- with .Values.manager.extraArgs }}
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}

{{/* The pod template of the Job and of the CronJob that make the certificates of the webhooks. */}}
{{- define "refit.certificatesTemplate" -}}
metadata:
  labels:
    app.kubernetes.io/name: refit-certificates
    app.kubernetes.io/part-of: refit
    {{- with .Values.commonLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  {{- include "refit.certificatesPod" . | nindent 2 }}
{{- end }}

{{/* What the Job that makes the certificates depends on: its pod, and the webhooks that need a caBundle. */}}
{{- define "refit.certificatesJob" -}}
{{ include "refit.certificatesTemplate" . }}
{{ range list "manager/20-webhook.yaml" "manager/21-webhook-sidecarsets.yaml" "hold-webhook/webhook.yaml" }}
{{- include (printf "%s/%s" $.Template.BasePath .) $ }}
{{- end }}
{{- end }}

{{- define "refit.certificatesPod" -}}
serviceAccountName: refit-certificates
restartPolicy: OnFailure
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- toYaml . | nindent 0 }}
{{- end }}
{{- with .Values.manager.tolerations }}
tolerations:
{{- toYaml . | nindent 0 }}
{{- end }}
{{- with .Values.manager.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml .Values.manager.podSecurityContext | nindent 2 }}
containers:
- name: certificates
  image: {{ include "refit.managerImage" . }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  {{- $configurations := include "refit.webhookConfigurations" . }}
  {{- if eq $configurations "refit-manager,refit-manager-sidecarsets,refit-manager-workloads" }}
  args: [certificates]
  {{- else }}
  args: [certificates, "--webhook-configurations={{ $configurations }}"]
  {{- end }}
  env:
  - name: POD_NAMESPACE
    valueFrom:
      fieldRef:
        fieldPath: metadata.namespace
  resources:
    requests:
      cpu: 10m
      memory: 32Mi
    limits:
      memory: 64Mi
  securityContext:
    {{- toYaml .Values.manager.containerSecurityContext | nindent 4 }}
{{- end }}
