//! Faults of the job's program.

// A Python traceback's last line is at the start of a line, possibly after torchrun's rank.
rules! { JOB:
    User GpuMemory Cause "cuda-out-of-memory": r"CUDA out of memory|OutOfMemoryError: CUDA|CUDA error: out of memory|cudaErrorMemoryAllocation|CUBLAS_STATUS_ALLOC_FAILED",
        "the model and its batch do not fit into the GPU's memory",
        "Use a smaller batch or sequence, activation checkpointing, or more GPUs for each model. If another process holds the GPU's memory, look at the node.",
        ["torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB (GPU 0; 79.15 GiB total capacity)",
         "RuntimeError: CUDA error: out of memory",
         "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"],
        ["NCCL INFO memory: 20 GiB"];
    User Code Cause "device-assertion": r"device-side assert triggered|Assertion `.*` failed\.?$",
        "an assertion in the job's GPU code failed",
        "Check that labels and indices are within range. CUDA_LAUNCH_BLOCKING=1 shows the line of the program that launched the kernel.",
        ["RuntimeError: CUDA error: device-side assert triggered",
         "../aten/src/ATen/native/cuda/Loss.cu:250: block: [0,0,0], thread: [3,0,0] Assertion `t >= 0 && t < n_classes` failed."],
        [];
    User Environment Cause "import-error": r"^(?:\[rank\d+\]: ?)?(?:ModuleNotFoundError|ImportError): ",
        "the container lacks a module that the job needs",
        "Install the module in the image or in the job's `setup`, or use an image that has it in the right version.",
        ["ModuleNotFoundError: No module named 'mmcv'", "[rank0]: ImportError: cannot import name 'x' from 'y'"],
        ["WARNING: ImportError was ignored: no module named apex"];
    User Code Cause "assertion": r"^(?:\[rank\d+\]: ?)?AssertionError\b",
        "an assertion in the job's code failed",
        "Read the condition in the traceback above the line, and correct the configuration or the code.",
        ["AssertionError", "[rank3]: AssertionError: batch size must be positive"],
        ["caught AssertionError and went on"];
    User Code Cause "python-error": r"^(?:\[rank\d+\]: ?)?(?:KeyError|ValueError|TypeError|AttributeError|NameError|IndexError|SyntaxError|IndentationError|NotImplementedError|ZeroDivisionError|UnicodeDecodeError|json\.decoder\.JSONDecodeError|yaml\.\w+\.\w*Error|omegaconf\.errors\.\w+|hydra\.errors\.\w+)(?::|$)",
        "the job's code or its specification is wrong",
        "Read the traceback above the line, and correct the code or its configuration.",
        ["ValueError: num_classes must be 20", "[rank1]: KeyError: 'train'",
         "omegaconf.errors.ConfigAttributeError: Key 'epochs' is not in struct"],
        ["UserWarning: ValueError is raised in later versions"];
    User Data Cause "file-missing": r"^(?:\[rank\d+\]: ?)?(?:FileNotFoundError|NotADirectoryError|IsADirectoryError|PermissionError): ",
        "a file of the job does not exist, or is not accessible",
        "Check that the path exists on the cluster, that it is mounted into the container, and that the job's user may use it.",
        ["FileNotFoundError: [Errno 2] No such file or directory: '/lustre/a/annotations.json'",
         "PermissionError: [Errno 13] Permission denied: '/lustre/b'"],
        ["mkdir: cannot create directory: File exists"];
    User Code Cause "shape-mismatch": r"size mismatch for |mat1 and mat2 shapes cannot be multiplied|The size of tensor a .* must match the size of tensor b",
        "the model does not match its data or checkpoint",
        "Check that the checkpoint and the data fit the configuration of the model.",
        ["RuntimeError: Error(s) in loading state_dict: size mismatch for head.weight: copying a param with shape [20]",
         "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x512 and 256x10)"],
        [];
    User HostMemory Cause "shared-memory": r"insufficient shared memory|DataLoader worker \(pid.*\) is killed by signal: Bus error",
        "the job's data loaders need more shared memory than the container has",
        "Use fewer data loader workers, or mount more shared memory at /dev/shm.",
        ["RuntimeError: DataLoader worker (pid 92) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory."],
        [];
    User Storage Cause "quota": r"Disk quota exceeded",
        "the user's quota on the shared file system is exceeded",
        "Remove files, or ask the site for a larger quota.",
        ["OSError: [Errno 122] Disk quota exceeded"],
        [];
}
