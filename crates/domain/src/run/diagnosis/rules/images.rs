//! Faults of the way to an image.

rules! { IMAGES:
    Infrastructure Image Cause "image-pull": r"(?:pyxis|enroot|\[ERROR\]|curl: \().*(?:timed out|Could not resolve host|Connection reset|connection refused|returned error code: (?:429|5\d\d))|curl: \((?:6|7|18|28|35|52|56)\)|(?:pyxis:\s+|\[ERROR\] )Checksum mismatch: |^Checksum mismatch: [0-9a-f]{12}|^FATAL: .* docker://.*(?:i/o timeout|connection refused|connection reset|no such host|TLS handshake timeout|toomanyrequests|received unexpected HTTP status: 5)",
        "the image could not be pulled on the node",
        "Run the job again. If this persists, check the connection from the nodes to the registry.",
        ["slurmstepd-node01: error: pyxis:     curl: (28) Connection timed out after 30000 milliseconds",
         "[ERROR] URL https://registry/v2/x/blobs/y returned error code: 503 Service Unavailable",
         "slurmstepd-node01: error: pyxis:     Checksum mismatch: a3ed95caeb02",
         "Checksum mismatch: a3ed95caeb02ffe68cdd9fd84406680ae93d633cb16422d00e8a7c22955b46d4",
         "curl: (6) Could not resolve host: registry",
         "FATAL:   Unable to handle docker://a/b:1 uri: failed to get checksum for docker://a/b:1: pinging container registry registry:5555: Get \"https://registry:5555/v2/\": dial tcp 131.169.5.213:5555: i/o timeout"],
        ["[INFO] Downloading 3 missing layers...", "Checksum mismatch: the data set is not the expected one"];
    // jq rejects the body of an answer: the error page of a gateway, with any status. Enroot before 3.5 also
    // gets one from ECR, although the login is right (NVIDIA/enroot#143). Enroot says the same if the node has no jq.
    Infrastructure Image Cause "registry-answer": r"\[ERROR\] Could not process JSON input",
        "the registry, or a proxy in front of it, did not answer in JSON; if this persists, check the proxy, update Enroot (ECR needs 3.5 or later), and check that the nodes have jq",
        "Check the proxy in front of the registry, the version of Enroot, and that the nodes have jq.",
        ["slurmstepd-node01: error: pyxis:     [ERROR] Could not process JSON input",
         "enroot import exited with code 1: [ERROR] Could not process JSON input"],
        ["ERROR: could not process JSON input of the data loader"];
    Infrastructure Storage Cause "node-disk": r"(?:pyxis:|enroot|squashfs).*No space left on device",
        "a disk of the node is full",
        "Exclude the node, or ask for its disk to be cleaned.",
        ["slurmstepd-node01: error: pyxis:     FATAL ERROR: writer: failed to write data block, because No space left on device"],
        ["OSError: [Errno 28] No space left on device: '/lustre/a'"];
    Infrastructure Image Cause "container-mount": r"enroot-mount: failed to (?:create |mount: (?:/(?:dev|proc|run|sys)\b|tmpfs))",
        "the node could not set up the container's file systems",
        "Exclude the node, and report it.",
        ["slurmstepd-node02: error: pyxis:     enroot-mount: failed to create directory: /var/tmp/enroot/pyxis_9.0/sys/fs/cgroup/systemd: Permission denied",
         "slurmstepd-node02: error: pyxis:     enroot-mount: failed to mount: /dev/nvidia0 at /var/tmp/enroot/pyxis_9.0/dev/nvidia0: No such file or directory"],
        [];
    - Image Cause "enroot-log": r"pyxis:\s{2,}(?:\[ERROR\]|enroot-\w+: |\S*(?i:error|fatal)|.*(?i:\bfailed\b|denied|no such file|not found|cannot|unable to|no space))",
        "Enroot could not make or start the container",
        "Read the line of Enroot; check the image, its mounts and the hooks of the site.",
        ["slurmstepd-node01: error: pyxis:     nvidia-container-cli: container error: failed to get device cgroup mount path",
         "slurmstepd-node01: error: pyxis:     /etc/rc: line 9: cd: /workspace: No such file or directory"],
        ["slurmstepd-node01: error: pyxis: container start failed with error code: 1", "slurmstepd-node01: error: pyxis:     [INFO] Extracting squashfs filesystem..."];
    - Image Symptom "container-fatal": r"^FATAL: {2,}\S",
        "the container could not be started",
        "Check the image, its mounts, and that the nodes allow what the container needs.",
        ["FATAL:   container creation failed: mount /lustre->/lustre error: while mounting /lustre: no such file or directory"],
        ["FATAL: the run has failed"];
    Consequence Image Echo "container-start": r"pyxis: (?:container (?:start failed|was not started successfully|exited too soon)|couldn't (?:create|get|start) |failed to (?:import docker image|create container filesystem))",
        "Pyxis could not start the container",
        "Read the lines of Enroot below this one.",
        ["slurmstepd-node01: error: pyxis: couldn't create enroot start configuration script",
         "slurmstepd-node01: error: pyxis: container start failed with error code: 1",
         "slurmstepd-node01: error: pyxis: container was not started successfully by another task",
         "slurmstepd-node01: error: pyxis: failed to import docker image: registry#team/a:1"],
        [];
}
