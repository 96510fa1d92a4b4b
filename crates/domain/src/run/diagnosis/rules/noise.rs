//! Lines that look like errors and are none.

rules! { NOISE:
    - Unknown Noise "level-below-error": r"^(?:INFO|DEBUG|WARN(?:ING)?|W\d{4}|I\d{4})\b|^\W{0,3}(?:WARNING|INFO|DEBUG)\b|: (?:UserWarning|FutureWarning|DeprecationWarning|RuntimeWarning|SyntaxWarning|ResourceWarning|ImportWarning|PendingDeprecationWarning|\w*Warning): |^\w*Warning: |\bNCCL INFO\b|\bNCCL TRACE\b",
        "a message below the level of an error", "",
        ["WARNING: ImportError was ignored: no module named apex",
         "/usr/lib/python3/site-packages/torch/nn/modules/loss.py:535: UserWarning: Using a target size that is different; this will likely lead to an error",
         "node01:1:1 [0] NCCL INFO NET/Plugin : dlerror=libnccl-net.so: cannot open shared object file: No such file or directory"],
        ["ERROR: the warning file is missing", "node01:1:1 [0] NCCL WARN Cuda failure 'invalid argument'"];
    - Unknown Noise "metric": r#"(?i)^(?:.*[\s,|{('"])?(?:\w+[_/ -])?(?:err|errors?|fail(?:ed|ures?)?|exceptions?|loss|rmse|mae|error[_ -]?rate|lost|killed|aborted)["']?\s*(?:[:=]|is)\s*(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?%?|nan|none|null|false|\[\]|0x0)\s*(?:[,;|})\]%].*|\w+[:=].*)?$"#,
        "a figure with the name of an error", "",
        ["epoch 3: loss 0.2 val_error: 0.013, lr=0.1", "step 10 error: 0.01", "done: ok=12 changed=3 errors=0", "top1 err = 23.1%", "\"failed\": 0,", "exceptions: none"],
        ["Error: 3 files are missing", "error: unrecognized arguments: --lr 3", "fatal error: 3 ranks failed to start"];
    - Unknown Noise "negated": r"(?i)\b(?:no|without|zero|0) (?:\w+ )?(?:errors?|failures?|exceptions?)\b|\bif (?:this|it|you|the \w+) fails?\b|\b(?:retry(?:ing)?|retries|falling back|fall back|skipp(?:ed|ing)|continuing without)\b|\bignor(?:e|ed|ing)\b.*\b(?:error|exception|failure)|\b(?:error|exception|failed|failure|cannot be preloaded).*\bignor(?:e|ed|ing)\b|(?:error|fail|exception)[- _](?:handl|toleran|correct|callback)\w*",
        "a sentence about errors, not one of them", "",
        ["Finished with no errors.", "ERROR: ld.so: object '/usr/lib/libprofile.so' from LD_PRELOAD cannot be preloaded (cannot open shared object file): ignored.", "Exception ignored in: <function MapDataset.__del__ at 0x7f>", "NCCL_ASYNC_ERROR_HANDLING=1 turns on error handling"],
        ["ValueError: no such option", "RuntimeError: failed to start"];
    - Environment Noise "shells-at-start": r"Inappropriate ioctl for device|cannot change locale|setlocale: |No value for \$TERM|X11 (?:connection|forwarding)|pip's dependency resolver does not currently|is over \d+% full|cannot set terminal process group|no job control in this shell",
        "a shell, or a program at its start, complains and goes on", "",
        ["stty: 'standard input': Inappropriate ioctl for device", "bash: warning: setlocale: LC_ALL: cannot change locale (en_US.UTF-8)",
         "ERROR: pip's dependency resolver does not currently take into account all the packages that are installed."],
        ["ERROR: Could not find a version that satisfies the requirement torch==9"];
    - Environment Noise "libraries-at-start": r"Unable to register cu(?:DNN|FFT|BLAS) factory|Could not (?:load dynamic library|find TensorRT)|computation_placer already registered|failed call to cuInit: UNKNOWN ERROR \(100\)|Unable to register cuBLAS|could not open file to read NUMA node|libnvinfer|successful NUMA node read from SysFS had negative value",
        "TensorFlow looks for libraries at its start", "",
        ["2024-05-01 12:00:00.1: E external/local_xla/xla/stream_executor/cuda/cuda_dnn.cc:9261] Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN when one has already been registered"],
        ["E tensorflow/core/framework: out of memory"];
    - Network Noise "socket-tries": r"The client socket cannot be initialized to connect to|The server socket cannot be initialized on \[::\]|errno: 97 - Address family not supported|failed to (?:connect|initialize).*\bretry(?:ing)?\b|The hostname of the client socket cannot be retrieved",
        "PyTorch tries another kind of address", "",
        ["[W socket.cpp:464] [c10d] The server socket cannot be initialized on [::]:29500 (errno: 97 - Address family not supported by protocol)."],
        ["[E socket.cpp:435] [c10d] The server socket has failed to listen on any local network address."];
}
