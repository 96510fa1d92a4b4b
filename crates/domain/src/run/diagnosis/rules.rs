//! The table: a pattern of a log line → what is at fault. Every example is a test.
//!
//! The rules cover the meaning of TAO's sixteen patterns. Lines that those match by mistake (`NCCL_ASYNC_ERROR_HANDLING`,
//! a weights file that is "not found" for a GPU model, CUDA out of memory) are counterexamples here.

use super::{Fault, Rule};

macro_rules! rules {
    (@unless) => { None };
    (@unless $unless:literal) => { Some($unless) };
    ($($fault:ident $id:literal: $pattern:literal $(unless $unless:literal)?, $why:literal, [$($matching:literal),+ $(,)?], [$($other:literal),* $(,)?];)*) => {
        /// Every rule.
        pub const RULES: &[Rule] = &[$(Rule {
            id: $id,
            pattern: $pattern,
            unless: rules!(@unless $($unless)?),
            fault: Fault::$fault,
            why: $why,
            matching: &[$($matching),+],
            others: &[$($other),*],
        }),*];
    };
}

// A Python traceback's last line is at the start of a line, possibly after torchrun's rank.
rules! {
    User "cuda-out-of-memory": r"CUDA out of memory|OutOfMemoryError: CUDA|CUDA error: out of memory|cudaErrorMemoryAllocation|CUBLAS_STATUS_ALLOC_FAILED",
        "the model and its batch do not fit into the GPU's memory",
        ["torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB (GPU 0; 79.15 GiB total capacity)",
         "RuntimeError: CUDA error: out of memory",
         "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"],
        ["NCCL INFO memory: 20 GiB"];
    User "device-assertion": r"device-side assert triggered|Assertion `.*` failed\.?$",
        "an assertion in the job's GPU code failed",
        ["RuntimeError: CUDA error: device-side assert triggered",
         "../aten/src/ATen/native/cuda/Loss.cu:250: block: [0,0,0], thread: [3,0,0] Assertion `t >= 0 && t < n_classes` failed."],
        [];
    User "import-error": r"^(?:\[rank\d+\]: ?)?(?:ModuleNotFoundError|ImportError): ",
        "the container lacks a module that the job needs",
        ["ModuleNotFoundError: No module named 'mmcv'", "[rank0]: ImportError: cannot import name 'x' from 'y'"],
        ["WARNING: ImportError was ignored: no module named apex"];
    User "assertion": r"^(?:\[rank\d+\]: ?)?AssertionError\b",
        "an assertion in the job's code failed",
        ["AssertionError", "[rank3]: AssertionError: batch size must be positive"],
        ["caught AssertionError and went on"];
    User "python-error": r"^(?:\[rank\d+\]: ?)?(?:KeyError|ValueError|TypeError|AttributeError|NameError|IndexError|SyntaxError|IndentationError|NotImplementedError|ZeroDivisionError|UnicodeDecodeError|json\.decoder\.JSONDecodeError|yaml\.\w+\.\w*Error|omegaconf\.errors\.\w+|hydra\.errors\.\w+)(?::|$)",
        "the job's code or its specification is wrong",
        ["ValueError: num_classes must be 20", "[rank1]: KeyError: 'train'",
         "omegaconf.errors.ConfigAttributeError: Key 'epochs' is not in struct"],
        ["UserWarning: ValueError is raised in later versions"];
    User "file-missing": r"^(?:\[rank\d+\]: ?)?(?:FileNotFoundError|NotADirectoryError|IsADirectoryError|PermissionError): ",
        "a file of the job does not exist, or is not accessible",
        ["FileNotFoundError: [Errno 2] No such file or directory: '/lustre/a/annotations.json'",
         "PermissionError: [Errno 13] Permission denied: '/lustre/b'"],
        ["mkdir: cannot create directory: File exists"];
    User "shape-mismatch": r"size mismatch for |mat1 and mat2 shapes cannot be multiplied|The size of tensor a .* must match the size of tensor b",
        "the model does not match its data or checkpoint",
        ["RuntimeError: Error(s) in loading state_dict: size mismatch for head.weight: copying a param with shape [20]",
         "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x512 and 256x10)"],
        [];
    User "shared-memory": r"insufficient shared memory|DataLoader worker \(pid.*\) is killed by signal: Bus error",
        "the job's data loaders need more shared memory than the container has",
        ["RuntimeError: DataLoader worker (pid 92) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory."],
        [];
    User "quota": r"Disk quota exceeded",
        "the user's quota on the shared file system is exceeded",
        ["OSError: [Errno 122] Disk quota exceeded"],
        [];
    Refused "registry-credentials": r"returned error code: 40[13]\b|^FATAL: .* docker://.*(?:unauthorized|denied): ",
        "the registry requires valid credentials for the image: install them for Enroot or Apptainer on the cluster",
        ["[ERROR] URL https://registry/v2/x/manifests/1 returned error code: 401 Unauthorized",
         "FATAL:   Unable to handle docker://registry/a:1 uri: failed to get checksum for docker://registry/a:1: unauthorized: authentication required"],
        [];
    // After the 401 of a registry with Basic authentication, Enroot prints nothing more.
    Refused "registry-login": r"\[INFO\] (?:Authenticating with user: |Using credentials from file: )"
        unless r"\[INFO\] (?:Authentication succeeded|Permission granted|Fetching |Found |Downloading |Extracting image )|\[ERROR\]|curl: \(",
        "the registry refuses the login for the image: install valid credentials for Enroot on the cluster",
        ["slurmstepd-node01: error: pyxis:     [INFO] Authenticating with user: <anonymous>",
         "enroot import exited with code 22: [INFO] Using credentials from file: /home/tao/.config/enroot/.credentials"],
        ["[INFO] Querying registry for permission grant"];
    Refused "image-missing": r"manifests/\S+ returned error code: 404|^FATAL: .* docker://.*: manifest unknown",
        "the image does not exist in its registry",
        ["[ERROR] URL http://registry/v2/x/manifests/9 returned error code: 404 Not Found",
         "FATAL:   Unable to handle docker://a/b:9 uri: failed to get checksum for docker://a/b:9: reading manifest 9 in registry/a/b: manifest unknown: manifest unknown"],
        [];
    // The file rules count only before the job's program begins: a program may print such lines too.
    MissingFile "image-file-missing": r"^slurmstepd(?:-\S+)?: error: pyxis:\s+\[ERROR\] No such file or directory: |^FATAL:\s+could not open image /\S+: failed to retrieve path",
        "the file of the image does not exist",
        ["FATAL:   could not open image /lustre/none.sif: failed to retrieve path for /lustre/none.sif: lstat /lustre/none.sif: no such file or directory",
         "slurmstepd-node01: error: pyxis:     [ERROR] No such file or directory: /lustre/none.sqsh",
         "slurmstepd-node01: error: pyxis:     [ERROR] No such file or directory: /lustre/images/tao"],
        ["[ERROR] No such file or directory: /lustre/data/train.json",
         "pyxis:     [ERROR] No such file or directory: /lustre/none.sqsh"];
    DamagedFile "image-file-damaged": r"^slurmstepd(?:-\S+)?: error: pyxis:\s+(?:\[ERROR\] Invalid image format: |FATAL ERROR|.*\buncompress failed)|^FATAL:\s+could not open image /\S+: image format not recognized"
        unless r"No space left on device|Disk quota exceeded|Input/output error|Cannot allocate memory|Stale file handle",
        "the file of the image is damaged, or its user cannot read it",
        ["slurmstepd-node01: error: pyxis:     [ERROR] Invalid image format: /lustre/bad.sqsh",
         "FATAL:   could not open image /lustre/bad.sif: image format not recognized",
         "slurmstepd-node01: error: pyxis:     FATAL ERROR: Can't find a valid SQUASHFS superblock on /lustre/bad.sqsh",
         "slurmstepd: error: pyxis:     zlib uncompress failed with error code -3"],
        ["FATAL ERROR in the data loader: not ours",
         "the log says slurmstepd-node01: error: pyxis:     zlib uncompress failed with error code -3"];
    User "certificate": r"curl: \(60\)",
        "the certificate of the registry is not trusted: install its CA on the nodes",
        ["slurmstepd-node01: error: pyxis:     curl: (60) SSL certificate problem: unable to get local issuer certificate"],
        [];
    User "mount-failed": r"enroot-mount: failed to (?:mount: |create .*: (?:Not a directory|File exists)$)"
        unless r"enroot-mount: failed to mount: (?:/(?:dev|proc|run|sys)\b|tmpfs)|Input/output error|Stale file handle|Transport endpoint",
        "a path could not be mounted into the container",
        ["slurmstepd-node02: error: pyxis:     enroot-mount: failed to mount: /lustre/a at /var/tmp/enroot/pyxis_9.0/data: Not a directory",
         "slurmstepd-node02: error: pyxis:     enroot-mount: failed to create directory: /var/tmp/enroot/pyxis_9.0/bin/sh/x: Not a directory"],
        [];
    User "mount-missing": r"container-mounts: source path does not exist",
        "a path to mount into the container does not exist",
        ["slurmstepd-node01: error: pyxis: --container-mounts: source path does not exist: /nope"],
        [];
    User "command-missing": r"^\S+: line \d+: .*: command not found$|execve\(\): .*: No such file or directory|\bexec: (?:line \d+: )?\S+: not found$",
        "the command does not exist",
        ["/lustre/u/state/1/1/command.sh: line 3: trian: command not found",
         "slurmstepd: error: execve(): /opt/none: No such file or directory",
         "/etc/rc: 13: exec: python: not found", "/bin/sh: exec: line 1: python: not found"],
        ["exec: the file was not found in the cache"];
    User "memory-limit": r"Exceeded job memory limit|exceeded memory limit \(|Detected \d+ oom[-_]kill event|tasks? [\d,-]+: Out Of Memory$",
        "the job used more memory than it requested",
        ["slurmstepd: error: Exceeded job memory limit",
         "slurmstepd: error: StepId=12.0 exceeded memory limit (1053696 > 1048576), being killed",
         "slurmstepd: error: Detected 1 oom_kill event in StepId=12.0. Some of the step tasks have been OOM Killed.",
         "srun: error: node01: task 0: Out Of Memory"],
        ["RuntimeError: the batch exceeded memory limits of the cache"];

    Infrastructure "srun-step": r"^srun: error: (?:Unable to create step for job \d+: (?:Invalid generic resource|Job/step already completing|Duplicate job id|Invalid job credential|Unable to contact slurm controller|Socket timed out|Slurm backup controller|Zero Bytes were|Communication (?:connection|shutdown) failure|Message (?:send|receive) failure)|Slurm job \d+ has expired)",
        "Slurm could not start the job's program on its nodes",
        ["srun: error: Unable to create step for job 39: Invalid generic resource (gres) specification",
         "srun: error: Unable to create step for job 31: Job/step already completing or completed",
         "srun: error: Unable to create step for job 312: Duplicate job id",
         "srun: error: Unable to create step for job 999: Zero Bytes were transmitted or received",
         "srun: error: Slurm job 82 has expired"],
        ["srun: error: Unable to create step for job 7: Requested node configuration is not available",
         "srun: error: Unable to create step for job 7: More processors requested than permitted"];
    Infrastructure "ray-start": r"The current node timed out during startup\. This could happen because some of the raylet failed",
        "Ray did not start on a node within its 30 seconds",
        ["Exception: The current node timed out during startup. This could happen because some of the raylet failed to startup or the GCS has become overloaded."],
        ["Error: Timed out waiting for other nodes to start."];
    Infrastructure "nccl": r"Watchdog caught collective operation timeout|ncclRemoteError|ncclSystemError|ncclInternalError|NCCL.*(?:unhandled system error|remote process exited or there was a network error)|NCCL WARN .*(?:timed? ?out|Connection (?:closed|reset)|ibv_\w+ failed|Cuda failure)|NCCL.*communicator was aborted",
        "NCCL lost its connection between the GPUs",
        ["[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1800123 milliseconds before timing out.",
         "torch.distributed.DistBackendError: NCCL error in: ../ProcessGroupNCCL.cpp:1970, ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.",
         "node02:171:220 [3] misc/ibvwrap.cc:262 NCCL WARN Call to ibv_modify_qp failed with error Connection timed out",
         "RuntimeError: NCCL communicator was aborted on rank 1."],
        ["NCCL INFO NCCL_ASYNC_ERROR_HANDLING set by environment to 1",
         "node01:1:1 [0] NCCL INFO Using network IB", "TORCH_NCCL_ASYNC_ERROR_HANDLING=1"];
    Infrastructure "cuda-initialisation": r"cuInit\b.*fail|CUDA (?:driver )?initialization.*(?:error|failed)|CUDA driver version is insufficient|no CUDA-capable device|NVIDIA driver.*too old|No CUDA GPUs are available|CUDA unknown error|system not yet initialized|devices are busy or unavailable|nvidia-container-cli: initialization error",
        "CUDA could not be initialized on the node",
        ["RuntimeError: CUDA driver initialization failed, you might not have a CUDA gpu.",
         "cuInit(0) failed with 802", "RuntimeError: No CUDA GPUs are available",
         "The NVIDIA driver on your system is too old (found version 11040).",
         "CUDA initialization: CUDA unknown error - this may be due to an incorrectly set up environment",
         "RuntimeError: CUDA error: no CUDA-capable device is detected",
         "CUDA driver version is insufficient for CUDA runtime version",
         "RuntimeError: CUDA error: system not yet initialized",
         "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable"],
        ["CUDA initialization took 3.2 s"];
    Infrastructure "cuda-unavailable": r"torch\.cuda\.is_available\(\)\s*(?:is|returned|returns|==?|:|->)?\s*False",
        "the node has no working GPU for the job",
        ["check: torch.cuda.is_available() returned False"],
        ["if torch.cuda.is_available(): use_amp = False"];
    Infrastructure "gpu-lost": r"Unable to determine the device handle for GPU|GPU.*(?:fallen off the bus|is lost)|nvidia-smi has failed because it couldn't communicate",
        "a GPU of the node has failed",
        ["Unable to determine the device handle for GPU 0000:3B:00.0: Unknown Error",
         "NVRM: GPU at PCI:0000:3b:00: GPU has fallen off the bus.", "Unable to determine the device handle for GPU0: GPU is lost"],
        ["GPU pretrained weights file not found: resnet50.pth"];
    Infrastructure "xid": r"NVRM: Xid \(PCI:[0-9A-Fa-f:.]+\): (?:48|5[678]|6[1-4]|6[89]|7[349]|92|9[45]|109|110|119|12[0-5]|13[67]|14[0-9])\b",
        "the GPU driver reported a hardware fault",
        ["[12.3] NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.",
         "NVRM: Xid (PCI:0000:86:00): 48, pid='<unknown>', DBE (double bit error)", "NVRM: Xid (PCI:0000:86:00): 119, Timeout waiting for RPC"],
        // A program's own invalid memory access causes 13, 31, 43 and 45.
        ["NVRM: Xid (PCI:0000:3b:00): 31, pid=1, MMU Fault", "NVRM: Xid (PCI:0000:3b:00): 13, Graphics Exception"];
    Infrastructure "ecc": r"(?i:uncorrectable ECC error|cudaErrorECCUncorrectable|double[- ]bit ECC)",
        "the GPU's memory is faulty",
        ["RuntimeError: CUDA error: uncorrectable ECC error encountered"],
        ["checking second error handler", "Volatile ECC errors: 0"];
    Infrastructure "gpu-temperature": r"(?i:GPU.*(?:thermal shutdown|temperature.*(?:exceeded|critical|shut ?down)))",
        "a GPU overheated",
        ["GPU 3 temperature 95C exceeded the shutdown threshold"],
        ["GPU 0 temperature: 45C", "| N/A   GPU 31C temperature ok |"];
    Infrastructure "infiniband": r"(?i:transport retry counter exceeded|IBV_WC_RETRY_EXC_ERR|RDMA_CM_EVENT_\w*ERROR|(?:mlx\d+_\d+|InfiniBand|ib\d+|RDMA).{0,60}(?:link (?:is )?down|port (?:is )?down|lost carrier|fatal error|device error|async(?:hronous)? (?:fatal )?event.*error))|NET/IB\s*:.*Got completion.*error",
        "the network between the nodes failed",
        ["mlx5_0: link down", "node01 kernel: mlx5_core 0000:5e:00.0: ib0: link is down",
         "NCCL WARN NET/IB : Got completion from peer 10.0.0.2<4791> with error 12, opcode 0, len 0, vendor err 129",
         "RDMA transport retry counter exceeded", "InfiniBand device error on port 1"],
        ["NET/IB : Using [0]mlx5_0:1/IB", "RDMA error handling enabled"];
    Infrastructure "oom-killer": r"Out of memory: Killed process|invoked oom-killer|oom-kill:constraint=CONSTRAINT_NONE",
        "the node ran out of memory and its kernel killed processes",
        ["kernel: Out of memory: Killed process 4211 (python) total-vm:93312kB",
         "python invoked oom-killer: gfp_mask=0x100cca, order=0"],
        [];
    Infrastructure "file-system": r"Stale file handle|\bESTALE\b|: Input/output error|\[Errno 5\]|Transport endpoint is not connected|Cannot send after transport endpoint shutdown",
        "the shared file system failed",
        ["OSError: [Errno 116] Stale file handle: '/lustre/a/b.tar'", "cat: /lustre/a: Input/output error",
         "OSError: [Errno 5] Input/output error", "ls: cannot access '/lustre': Cannot send after transport endpoint shutdown"],
        [];
    Infrastructure "image-pull": r"(?:pyxis|enroot|\[ERROR\]|curl: \().*(?:timed out|Could not resolve host|Connection reset|connection refused|returned error code: (?:429|5\d\d))|curl: \((?:6|7|18|28|35|52|56)\)|(?:pyxis:\s+|\[ERROR\] )Checksum mismatch: |^FATAL: .* docker://.*(?:i/o timeout|connection refused|connection reset|no such host|TLS handshake timeout|toomanyrequests|received unexpected HTTP status: 5)",
        "the image could not be pulled on the node",
        ["slurmstepd-node01: error: pyxis:     curl: (28) Connection timed out after 30000 milliseconds",
         "[ERROR] URL https://registry/v2/x/blobs/y returned error code: 503 Service Unavailable",
         "slurmstepd-node01: error: pyxis:     Checksum mismatch: a3ed95caeb02",
         "curl: (6) Could not resolve host: registry",
         "FATAL:   Unable to handle docker://a/b:1 uri: failed to get checksum for docker://a/b:1: pinging container registry registry:5555: Get \"https://registry:5555/v2/\": dial tcp 131.169.5.213:5555: i/o timeout"],
        ["[INFO] Downloading 3 missing layers..."];
    // jq rejects the body of an answer: the error page of a gateway, with any status. Enroot before 3.5 also
    // gets one from ECR, although the login is right (NVIDIA/enroot#143). Enroot says the same if the node has no jq.
    Infrastructure "registry-answer": r"\[ERROR\] Could not process JSON input",
        "the registry, or a proxy in front of it, did not answer in JSON; if this persists, check the proxy, update Enroot (ECR needs 3.5 or later), and check that the nodes have jq",
        ["slurmstepd-node01: error: pyxis:     [ERROR] Could not process JSON input",
         "enroot import exited with code 1: [ERROR] Could not process JSON input"],
        ["ERROR: could not process JSON input of the data loader"];
    Infrastructure "node-disk": r"(?:pyxis:|enroot|squashfs).*No space left on device",
        "a disk of the node is full",
        ["slurmstepd-node01: error: pyxis:     FATAL ERROR: writer: failed to write data block, because No space left on device"],
        ["OSError: [Errno 28] No space left on device: '/lustre/a'"];
    Infrastructure "container-mount": r"enroot-mount: failed to (?:create |mount: (?:/(?:dev|proc|run|sys)\b|tmpfs))",
        "the node could not set up the container's file systems",
        ["slurmstepd-node02: error: pyxis:     enroot-mount: failed to create directory: /var/tmp/enroot/pyxis_9.0/sys/fs/cgroup/systemd: Permission denied",
         "slurmstepd-node02: error: pyxis:     enroot-mount: failed to mount: /dev/nvidia0 at /var/tmp/enroot/pyxis_9.0/dev/nvidia0: No such file or directory"],
        [];
    Consequence "container-start": r"pyxis: (?:container (?:start failed|was not started successfully|exited too soon)|couldn't (?:create|get|start) |failed to (?:import docker image|create container filesystem))",
        "Pyxis could not start the container",
        ["slurmstepd-node01: error: pyxis: couldn't create enroot start configuration script",
         "slurmstepd-node01: error: pyxis: container start failed with error code: 1",
         "slurmstepd-node01: error: pyxis: container was not started successfully by another task",
         "slurmstepd-node01: error: pyxis: failed to import docker image: registry#team/a:1"],
        [];
    Infrastructure "slurm-step": r"srun: error: .*(?:Node failure on|Unable to confirm allocation|Task launch for .* failed on node|Timed out waiting for job step)|slurmstepd.*: error: .*(?:Communication connection failure|Node failure)|Job step aborted: .*due to node failure",
        "Slurm lost a node of the job, or could not start its step",
        ["srun: error: Node failure on node02",
         "srun: error: Task launch for StepId=12.0 failed on node node03: Communication connection failure"],
        ["srun: error: node02: task 1: Exited with exit code 1"];
    Infrastructure "port-taken": r"^tao-slurm: port \d+ is taken on ",
        "another program has the port of a service on its node",
        ["tao-slurm: port 20824 is taken on node01"],
        ["tao-slurm: the port is not there"];
    Infrastructure "rendezvous": r"RendezvousConnectionError|The (?:client|server) socket has failed to (?:connect|listen)|EADDRINUSE|TCPStore.*timed? ?out",
        "the job's nodes could not connect to each other, or the port was in use",
        ["torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store has failed.",
         "RuntimeError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE"],
        [];
}
