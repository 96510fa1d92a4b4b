//! Faults of programs and their surroundings that do not decide about a retry.

rules! { CODE:
    - GpuMemory Cause "gpu-memory": r"HIP out of memory|cuda runtime error \(2\)|CUDA_ERROR_OUT_OF_MEMORY|RESOURCE_EXHAUSTED|ResourceExhaustedError|OOM when allocating tensor|No available memory for the cache blocks|larger than the (?:maximum number of tokens that can be stored in|available) KV cache|Free memory on device .* is less than desired GPU memory|needed, which is larger than the available KV cache memory|XLA.*[Oo]ut of memory|Not enough memory\. Please try to increase --mem-fraction-static|NPU out of memory|Failed to allocate memory for requested buffer|CUDNN_STATUS_ALLOC_FAILED",
        "the model and its batch do not fit into the GPU's memory",
        "Use a smaller batch, sequence or cache, activation checkpointing, or more GPUs for each model. If another process holds the GPU's memory, look at the node.",
        ["ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.",
         "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1073741824 bytes."],
        ["Memory: 20 GiB of the GPU are free"];
    - Code Cause "gpu-code": r"an illegal memory access was encountered|illegal instruction was encountered|misaligned address|unspecified launch failure|CUDA_ERROR_ILLEGAL_ADDRESS|Memory access fault by GPU|HSA_STATUS_ERROR|CUDA error: invalid (?:configuration argument|device ordinal|argument|resource handle)|invalid device ordinal|device kernel image is invalid|CUDNN_STATUS_(?:EXECUTION_FAILED|INTERNAL_ERROR|MAPPING_ERROR|NOT_SUPPORTED)|CUBLAS_STATUS_(?:EXECUTION_FAILED|INTERNAL_ERROR|NOT_SUPPORTED|INVALID_VALUE)",
        "a kernel of the job failed on the GPU",
        "Run with CUDA_LAUNCH_BLOCKING=1 to find the operation. If it happens on one GPU only, exclude its node.",
        ["RuntimeError: CUDA error: an illegal memory access was encountered"],
        ["no CUDA error was found"];
    - Environment Cause "gpu-architecture": r"no kernel image is available|is not compatible with the current PyTorch installation|cudaErrorNoKernelImageForDevice|unsupported gpu architecture|Unsupported (?:NVIDIA|GPU|compute) (?:capability|architecture)|PTX was compiled with an unsupported toolchain|(?:requires|needs|only supports) (?:Ampere|Hopper|compute capability|sm_?\d)|CUDA version .* mismatch|detected CUDA version",
        "the software was not built for these GPUs",
        "Use an image whose CUDA and PyTorch were built for the GPUs of the partition.",
        ["RuntimeError: CUDA error: no kernel image is available for execution on the device"],
        ["NVIDIA A100 with CUDA capability sm_80"];
    - Environment Cause "library": r"undefined symbol|cannot open shared object file|version `\S+' not found|libcuda\.so.*not found|GLIBC\S* not found|symbol lookup error|error while loading shared libraries|Error building extension|CUDA_HOME environment variable is not set|Ninja is required|CMake Error|fatal error: \S+: No such file",
        "a native library is missing, or does not fit the others",
        "Install the library in the image, or build the extension again for the versions of the image.",
        ["ImportError: /usr/lib/flash_attn_2_cuda.so: undefined symbol: _ZN3c105ErrorC2E", "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory",
         "python: error while loading shared libraries: libpython3.10.so.1.0: cannot open shared object file: No such file or directory"],
        ["the library has no undefined names"];
    - Storage Cause "disk-full": r"(?i:no space left on device|\[Errno 28\]|PytorchStreamWriter failed writing file|iostream error)",
        "a disk is full",
        "Remove files, or write to another file system. TMPDIR and caches in the home directory are often the full ones.",
        ["OSError: [Errno 28] No space left on device", "RuntimeError: [enforce fail at inline_container.cc:471] . PytorchStreamWriter failed writing file data/42: file write failed"],
        ["space left: 3 GB"];
    - Data Cause "damaged-file": r"PytorchStreamReader failed|invalid magic number; corrupt file|UnpicklingError|SafetensorError|Error while deserializing header|HeaderTooLarge|MetadataIncompleteBuffer|BadZipFile|UnidentifiedImageError|Ran out of input|ArrowInvalid|Parquet magic bytes not found|corrupt(?:ed)? (?:file|data|header|checkpoint)|unexpected EOF",
        "a file is damaged, or is not of the expected kind",
        "Write or download the file again, and check that no download or save was interrupted. Git LFS pointers are no data.",
        ["RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory",
         "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge"],
        ["checked 12 files, none is damaged"];
    - Data Cause "checkpoint-keys": r"^\s+(?:Missing|Unexpected) key\(s\) in state_dict: ",
        "the checkpoint has other parameters than the model",
        "Check that the checkpoint fits the configuration of the model, and whether its keys have a prefix such as `module.`.",
        ["\tMissing key(s) in state_dict: \"head.weight\", \"head.bias\". ", "\tUnexpected key(s) in state_dict: \"module.head.weight\". "],
        ["ignored: Missing key(s) in state_dict: \"ema\""];
    - Code Cause "unused-parameters": r"Expected to have finished reduction in the prior iteration|Expected to mark a variable ready only once",
        "the ranks do not agree on which parameters of the model have gradients",
        "Let every parameter take part in the loss, or set find_unused_parameters=True. With activation checkpointing, use the variant that is not reentrant.",
        ["RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that your module has parameters that were not used in producing loss.",
         "RuntimeError: Expected to mark a variable ready only once. This error is caused by one of the following reasons: 1) Use of a module parameter outside the `forward` function."],
        ["[W reducer.cpp:1289] Warning: find_unused_parameters=True was specified in DDP constructor, but did not find any unused parameters in the forward pass."];
    - Code Cause "fortran": r"^Fortran runtime error: ",
        "a program in Fortran ended with an error",
        "Read the line before it: it names the place in the source, the unit and the file.",
        ["Fortran runtime error: Index '12' of dimension 1 of array 'cells' above upper bound of 11"],
        ["caught a Fortran runtime error: 3 are left"];
    - Data Cause "hub": r"RepositoryNotFoundError|GatedRepoError|LocalEntryNotFoundError|EntryNotFoundError|HfHubHTTPError|OfflineModeIsEnabled|(?:401|403|404) Client Error|Cannot access gated repo|is not a (?:local folder|valid model identifier)|couldn't connect to 'https://huggingface\.co'|Can't load (?:tokenizer|the configuration|the model)|does not appear to have a file named",
        "a model or data set could not be read from its hub",
        "Check the name, the token and its rights. On nodes without Internet, download it before and set HF_HUB_OFFLINE=1.",
        ["huggingface_hub.errors.GatedRepoError: 403 Client Error. (Request ID: Root=1-66)",
         "OSError: We couldn't connect to 'https://huggingface.co' to load this file, couldn't find it in the cached files"],
        ["Loading the model of meta-llama from the cache"];
    - Code Cause "arguments": r"error: (?:unrecognized arguments|argument |the following arguments are required|ambiguous option|invalid choice)|^(?:\S+: )?error: .*(?:argument|option)|Unknown (?:argument|option|parameter)|got an unexpected keyword argument|Error: No such (?:option|command)|unrecognized command|Could not override '|Primary config|MissingConfigException|ConfigKeyError|ConfigAttributeError|MissingMandatoryValue",
        "the command or the configuration has an unknown or missing argument",
        "Correct the arguments: the program's version may differ from the one that they are for.",
        ["train.py: error: unrecognized arguments: --local-rank=0", "TypeError: TrainingArguments.__init__() got an unexpected keyword argument 'evaluation_strategy'"],
        ["the argument list was printed"];
}
