{{- define "hr.security" -}}
automountServiceAccountToken: false
securityContext: { runAsNonRoot: true, runAsUser: 10001, fsGroup: 10001, seccompProfile: { type: RuntimeDefault } }
{{- end }}
{{- define "hr.pod" -}}
{{ include "hr.security" . }}
volumes:
  - { name: data, persistentVolumeClaim: { claimName: {{ .Release.Name }}-data } }
  - { name: tmp, emptyDir: { sizeLimit: 1Gi } }
{{- end }}
{{- define "hr.container" -}}
image: {{ .Values.image.repository }}:{{ .Values.image.tag }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext: { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: { drop: [ALL] } }
envFrom: [{ secretRef: { name: {{ .Values.secret }} } }]
env:
  - { name: RAG_PUBLIC_URL, value: "https://{{ .Values.host }}" }
  - { name: RAG_WORKER, value: {{ not .Values.workers | quote }} }
  {{- range $name, $value := .Values.settings }}
  - { name: {{ $name }}, value: {{ $value | quote }} }
  {{- end }}
volumeMounts: [{ name: data, mountPath: /data }, { name: tmp, mountPath: /tmp }]
{{- end }}
