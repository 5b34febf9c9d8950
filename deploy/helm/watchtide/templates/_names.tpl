{{- define "watchtide.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{- /* The service account of the pods. */ -}}
{{- define "watchtide.account" -}}
{{- .Values.serviceAccount.name | default (include "watchtide.name" .) }}
{{- end }}

{{- /* Cluster roles have no namespace. */ -}}
{{- define "watchtide.role" -}}
{{- printf "%s-%s" .Release.Namespace (include "watchtide.name" .) }}
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
{{- /* Replicas ask each other where they can: a token only goes over TLS, unless replicas are given. */ -}}
{{- $secure := and $operations.tls (or $operations.replicas_tls $operations.replicas_token_file) -}}
{{- $open := not (or $operations.tls $operations.role $operations.replicas_token_file) -}}
{{- if and (not $operations.replicas) (or $secure $open) -}}
{{- $_ := set $operations "replicas" (list (printf "dns+%s://%s-replicas:8081" (ternary "https" "http" (not $open)) $name)) -}}
{{- end -}}
{{- $_ := set $c "operations" $operations -}}
{{ toYaml $c }}
{{- end }}

{{- define "watchtide.probe" -}}
{ path: {{ .path }}, port: http{{ if (.Values.config.http).tls }}, scheme: HTTPS{{ end }} }
{{- end }}

{{- define "watchtide.kind" -}}
{{- ternary "StatefulSet" "Deployment" .Values.persistence.enabled -}}
{{- end -}}
