//! Faults of what the job asks for: its image, its mounts, its command, its memory.

rules! { REGISTRY:
    Refused Image Cause "registry-credentials": r"returned error code: 40[13]\b|^FATAL: .* docker://.*(?:unauthorized|denied): ",
        "the registry requires valid credentials for the image: install them for Enroot or Apptainer on the cluster",
        "Install credentials for the registry on the cluster, and check that they may read this image.",
        ["[ERROR] URL https://registry/v2/x/manifests/1 returned error code: 401 Unauthorized",
         "FATAL:   Unable to handle docker://registry/a:1 uri: failed to get checksum for docker://registry/a:1: unauthorized: authentication required"],
        [];
    // After the 401 of a registry with Basic authentication, Enroot prints nothing more.
    Refused Image Cause "registry-login": r"\[INFO\] (?:Authenticating with user: |Using credentials from file: )"
        unless r"\[INFO\] (?:Authentication succeeded|Permission granted|Fetching |Found |Downloading |Extracting image )|\[ERROR\]|curl: \(",
        "the registry refuses the login for the image: install valid credentials for Enroot on the cluster",
        "Install credentials for the registry on the cluster.",
        ["slurmstepd-node01: error: pyxis:     [INFO] Authenticating with user: <anonymous>",
         "enroot import exited with code 22: [INFO] Using credentials from file: /home/tao/.config/enroot/.credentials"],
        ["[INFO] Querying registry for permission grant"];
    Refused Image Cause "image-missing": r"manifests/\S+ returned error code: 404|^FATAL: .* docker://.*: manifest unknown",
        "the image does not exist in its registry",
        "Check the name and the tag of the image.",
        ["[ERROR] URL http://registry/v2/x/manifests/9 returned error code: 404 Not Found",
         "FATAL:   Unable to handle docker://a/b:9 uri: failed to get checksum for docker://a/b:9: reading manifest 9 in registry/a/b: manifest unknown: manifest unknown"],
        [];
    // The file rules count only before the job's program begins: a program may print such lines too.
    MissingFile Image Cause "image-file-missing": r"^slurmstepd(?:-\S+)?: error: pyxis:\s+\[ERROR\] No such file or directory: |^FATAL:\s+could not open image /\S+: failed to retrieve path",
        "the file of the image does not exist",
        "Check the path of the image on the cluster.",
        ["FATAL:   could not open image /lustre/none.sif: failed to retrieve path for /lustre/none.sif: lstat /lustre/none.sif: no such file or directory",
         "slurmstepd-node01: error: pyxis:     [ERROR] No such file or directory: /lustre/none.sqsh",
         "slurmstepd-node01: error: pyxis:     [ERROR] No such file or directory: /lustre/images/tao"],
        ["[ERROR] No such file or directory: /lustre/data/train.json",
         "pyxis:     [ERROR] No such file or directory: /lustre/none.sqsh"];
    DamagedFile Image Cause "image-file-damaged": r"^slurmstepd(?:-\S+)?: error: pyxis:\s+(?:\[ERROR\] Invalid image format: |FATAL ERROR|.*\buncompress failed)|^FATAL:\s+could not open image /\S+: image format not recognized"
        unless r"No space left on device|Disk quota exceeded|Input/output error|Cannot allocate memory|Stale file handle",
        "the file of the image is damaged, or its user cannot read it",
        "Make the image file again, and check that the job's user can read it.",
        ["slurmstepd-node01: error: pyxis:     [ERROR] Invalid image format: /lustre/bad.sqsh",
         "FATAL:   could not open image /lustre/bad.sif: image format not recognized",
         "slurmstepd-node01: error: pyxis:     FATAL ERROR: Can't find a valid SQUASHFS superblock on /lustre/bad.sqsh",
         "slurmstepd: error: pyxis:     zlib uncompress failed with error code -3"],
        ["FATAL ERROR in the data loader: not ours",
         "the log says slurmstepd-node01: error: pyxis:     zlib uncompress failed with error code -3"];
    User Image Cause "certificate": r"curl: \(60\)",
        "the certificate of the registry is not trusted: install its CA on the nodes",
        "Install the certificate of the registry's authority on the nodes.",
        ["slurmstepd-node01: error: pyxis:     curl: (60) SSL certificate problem: unable to get local issuer certificate"],
        [];
    User Image Cause "mount-failed": r"enroot-mount: failed to (?:mount: |create .*: (?:Not a directory|File exists)$)"
        unless r"enroot-mount: failed to mount: (?:/(?:dev|proc|run|sys)\b|tmpfs)|Input/output error|Stale file handle|Transport endpoint",
        "a path could not be mounted into the container",
        "Check the source and the target of the mount.",
        ["slurmstepd-node02: error: pyxis:     enroot-mount: failed to mount: /lustre/a at /var/tmp/enroot/pyxis_9.0/data: Not a directory",
         "slurmstepd-node02: error: pyxis:     enroot-mount: failed to create directory: /var/tmp/enroot/pyxis_9.0/bin/sh/x: Not a directory"],
        [];
    User Image Cause "mount-missing": r"container-mounts: source path does not exist",
        "a path to mount into the container does not exist",
        "Create the directory on the cluster, or correct the mount.",
        ["slurmstepd-node01: error: pyxis: --container-mounts: source path does not exist: /nope"],
        [];
    User Environment Symptom "command-missing": r"^\S+: line \d+: .*: command not found$|execve\(\): .*: No such file or directory|\bexec: (?:line \d+: )?\S+: not found$",
        "the command does not exist",
        "Check the spelling of the command, and that it is installed in the image or on the node.",
        ["/lustre/u/state/1/1/command.sh: line 3: trian: command not found",
         "slurmstepd: error: execve(): /opt/none: No such file or directory",
         "/etc/rc: 13: exec: python: not found", "/bin/sh: exec: line 1: python: not found"],
        ["exec: the file was not found in the cache"];
    User HostMemory Cause "memory-limit": r"Exceeded job memory limit|exceeded memory limit \(|Detected \d+ oom[-_]kill event|tasks? [\d,-]+: Out Of Memory$",
        "the job used more memory than it requested",
        "Request more memory, or use fewer data loader workers.",
        ["slurmstepd: error: Exceeded job memory limit",
         "slurmstepd: error: StepId=12.0 exceeded memory limit (1053696 > 1048576), being killed",
         "slurmstepd: error: Detected 1 oom_kill event in StepId=12.0. Some of the step tasks have been OOM Killed.",
         "srun: error: node01: task 0: Out Of Memory"],
        ["RuntimeError: the batch exceeded memory limits of the cache"];
}
