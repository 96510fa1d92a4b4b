{{- /* The parts of a pod that api, worker and migrate share. */}}
{{- define "tao-slurm.image" -}}
image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end }}

{{- define "tao-slurm.confined" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end }}

{{- define "tao-slurm.pod" -}}
serviceAccountName: {{ include "tao-slurm.name" . }}
automountServiceAccountToken: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: { type: RuntimeDefault }
# Kubernetes makes secrets readable for a group, but SSH keys must belong to their owner alone. So copy them, in memory.
initContainers:
  - name: keys
    {{- include "tao-slurm.image" . | nindent 4 }}
    command: [sh, -c, "install -m 600 /secrets/* /keys"]
    {{- include "tao-slurm.confined" . | nindent 4 }}
    resources:
      requests: { cpu: 10m, memory: 16Mi }
      limits: { memory: 64Mi }
    volumeMounts:
      - { name: secrets, mountPath: /secrets, readOnly: true }
      - { name: keys, mountPath: /keys }
volumes:
  - name: config
    configMap: { name: {{ include "tao-slurm.name" . }} }
  - name: secrets
    secret: { secretName: {{ .Values.secrets.keys }}, defaultMode: 0440 }
  - name: keys
    emptyDir: { medium: Memory, sizeLimit: 1Mi }
  - name: state
    emptyDir: { sizeLimit: 64Mi }
{{- end }}

{{- define "tao-slurm.container" -}}
{{ include "tao-slurm.image" . }}
env:
  - { name: TAO_SLURM_CONFIG, value: /etc/tao-slurm/tao-slurm.toml }
envFrom:
  - secretRef: { name: {{ .Values.secrets.environment }} }
{{ include "tao-slurm.confined" . }}
volumeMounts:
  - { name: config, mountPath: /etc/tao-slurm, readOnly: true }
  - { name: keys, mountPath: /keys, readOnly: true }
  - { name: state, mountPath: /var/lib/tao-slurm }
{{- end }}
