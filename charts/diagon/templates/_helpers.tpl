{{/* The labels that tools for the system this replaces select by. */}}
{{- define "diagon.labels" -}}
app.kubernetes.io/name: diagon-daemon
app.kubernetes.io/part-of: diagon
name: diagon-daemon
{{- end }}

{{/* Where the probes dial: the kubelet stands on the node's network, as the agent does. */}}
{{- define "diagon.probe" -}}
port: http
{{- if has .Values.http.host (list "127.0.0.1" "::1" "localhost") }}
host: {{ .Values.http.host | quote }}
{{- end }}
{{- end }}
