{{- define "pushsvc.fullname" -}}
{{- $name := .Release.Name -}}
{{- if not (contains .Chart.Name $name) }}{{ $name = printf "%s-%s" $name .Chart.Name }}{{ end -}}
{{- trunc 40 $name | trimSuffix "-" -}}
{{- end }}

{{- define "pushsvc.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "pushsvc.labels" -}}
{{ include "pushsvc.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* The name under which pods of the cluster reach web. */}}
{{- define "pushsvc.service" -}}
{{ include "pushsvc.fullname" . }}.{{ .Release.Namespace }}.svc
{{- end }}

{{/* A number as a whole one if it is: Helm reads 5000000 as 5e+06. */}}
{{- define "pushsvc.text" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) }}{{ int64 . }}{{ else }}{{ . }}{{ end -}}
{{- end }}

{{/* Which process of the Procfile, and its values. */}}
{{- define "pushsvc.container" -}}
{{- $process := .process -}}
{{- $values := .values -}}
{{- with .root -}}
name: {{ $process }}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
args: [{{ $process }}]
env:
  - name: ALLOWED_HOSTS
    value: {{ append .Values.hosts (include "pushsvc.service" .) | join "," | quote }}
  {{- if not .Values.settings.PUBLIC_BASE_URL }}
  - name: PUBLIC_BASE_URL
    value: "https://{{ first .Values.hosts }}"
  {{- end }}
  {{- range $name, $value := .Values.settings }}
  - name: {{ $name }}
    value: {{ include "pushsvc.text" $value | quote }}
  {{- end }}
  {{- range $name, $secret := .Values.secrets }}
  {{- if $secret }}
  - name: {{ $name }}_FILE
    value: /run/secrets/pushsvc/{{ $name }}
  {{- end }}
  {{- end }}
  {{- with $values.concurrency }}
  - name: {{ eq $process "web" | ternary "WEB_CONCURRENCY" "WORKER_CONCURRENCY" }}
    value: {{ include "pushsvc.text" . | quote }}
  {{- end }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
resources: {{- toYaml $values.resources | nindent 2 }}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
  - {name: secrets, mountPath: /run/secrets/pushsvc, readOnly: true}
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- end }}

{{/* What the pods of all processes have in common, besides their container. */}}
{{- define "pushsvc.pod" -}}
automountServiceAccountToken: false
# Otherwise each Service of the namespace would be in the environment.
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
volumes:
  - name: tmp
    emptyDir: {medium: Memory, sizeLimit: 64Mi}
  - name: secrets
    projected:
      defaultMode: 0440
      sources:
        {{- range $name, $secret := .Values.secrets }}
        {{- if $secret }}
        - secret:
            name: {{ $secret.name }}
            items: [{key: {{ $secret.key | default $name }}, path: {{ $name }}}]
        {{- end }}
        {{- end }}
  {{- with .Values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* What a worker is scaled by, as a list: a metric of /metrics, its labels, and the target. An AverageValue is for each
pod. A Value multiplies the number of pods by its ratio to the target. */}}
{{- define "pushsvc.scaling" -}}
{{- $platform := trimPrefix "worker-" .process -}}
{{- if .values.recipients }}
- metric: pushsvc_due_recipients
  labels: {platform: {{ $platform }}}
  target: {{ include "pushsvc.text" .values.recipients | quote }}
  type: AverageValue
- metric: pushsvc_batch_lateness_seconds
  labels: {platform: {{ $platform }}}
  target: {{ include "pushsvc.text" .values.lateness | quote }}
  type: Value
{{- else if eq .process "worker-plan" }}
- metric: pushsvc_notification_start_lateness_seconds
  target: {{ include "pushsvc.text" .values.lateness | quote }}
  type: Value
{{- else }}
- metric: pushsvc_webhook_lateness_seconds
  target: {{ include "pushsvc.text" .values.lateness | quote }}
  type: Value
{{- end }}
{{- end }}
