{{- define "watchtide.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{- define "watchtide.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "watchtide.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion | replace "+" "-" }}{{ end }}
{{- end }}
{{- end }}

{{- /* The configuration, with the listeners and host names that the other objects rely on. */ -}}
{{- define "watchtide.configuration" -}}
{{- $name := include "watchtide.name" . -}}
{{- $names := list -}}
{{- range list $name (printf "%s-replicas" $name) (printf "%s-operations" $name) -}}
{{- $names = concat $names (list . (printf "%s.%s" . $.Release.Namespace)) -}}
{{- end -}}
{{- $names = concat $names (list "*.svc" "*.svc.cluster.local") -}}
{{- if not .Values.config.watches -}}
{{- fail "config.watches and config.sources say what to watch: values.yaml has an example" -}}
{{- end -}}
{{- $c := deepCopy .Values.config -}}
{{- $http := $c.http | default dict -}}
{{- $_ := set $http "listen" "0.0.0.0:8080" -}}
{{- $_ := set $http "hosts" (concat $names ($http.hosts | default list)) -}}
{{- $_ := set $c "http" $http -}}
{{- if .Values.grpc.enabled -}}
{{- $_ := set $c "grpc" (set ($c.grpc | default dict) "listen" "0.0.0.0:8082") -}}
{{- end -}}
{{- $operations := set ($c.operations | default dict) "listen" "0.0.0.0:8081" -}}
{{- if not (or $operations.replicas $operations.tls $operations.role) -}}
{{- $_ := set $operations "replicas" (list (printf "dns+http://%s-replicas:8081" $name)) -}}
{{- end -}}
{{- $_ := set $c "operations" $operations -}}
{{ toYaml $c }}
{{- end }}

{{- define "watchtide.probe" -}}
{ path: {{ .path }}, port: http{{ if (.Values.config.http).tls }}, scheme: HTTPS{{ end }} }
{{- end }}
