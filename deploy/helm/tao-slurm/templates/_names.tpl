{{- define "tao-slurm.name" -}}
{{- if contains "tao-slurm" .Release.Name }}{{ .Release.Name | trunc 48 | trimSuffix "-" }}
{{- else }}{{ printf "%s-tao-slurm" .Release.Name | trunc 48 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- /* What selects the pods of a component: (list $ "api"), or of all components: (list $ ""). */}}
{{- define "tao-slurm.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: tao-slurm
app.kubernetes.io/instance: {{ $root.Release.Name }}
{{- with index . 1 }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end }}

{{- define "tao-slurm.labels" -}}
{{- $root := index . 0 -}}
{{ include "tao-slurm.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version }}
{{- end }}
