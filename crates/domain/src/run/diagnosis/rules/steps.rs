//! Steps of the job's script: its environment, its packages, what it builds, and the commands that it calls.

rules! { STEPS:
    - Environment Symptom "environment": r"CondaError|EnvironmentNameNotFound|EnvironmentLocationNotFound|Could not find conda environment|Run 'conda init' before 'conda activate'|shell has not been properly configured to use 'conda activate'|activate: No such file or directory|conda: command not found|module: (?:command )?not found|Lmod has detected the following error|Unable to locate a modulefile|ModuleCmd_Load|The following module\(s\) are unknown",
        "the environment of the program could not be entered",
        "Correct the activation in the job's `setup`, and let a failure of it end the job (`set -e`).",
        ["EnvironmentNameNotFound: Could not find conda environment: train", "train.sh: line 4: venv/bin/activate: No such file or directory",
         "Lmod has detected the following error: The following module(s) are unknown: \"cuda/13\""],
        ["conda activate train"];
    - Environment Symptom "shell": r"(?i:: command not found$|: No such file or directory$|: Permission denied$|: cannot execute|: not found$|can't open file '|unbound variable$|: syntax error|bad interpreter|: bad substitution|exec format error)",
        "a command or a file does not exist, or cannot be used",
        "Check the path and its spelling, and that the container or the node has it.",
        ["bash: nvcc: command not found", "python: can't open file '/workspace/train.py': [Errno 2] No such file or directory",
         "/usr/bin/env: 'python': No such file or directory", "train.sh: line 12: MASTER_ADDR: unbound variable"],
        ["the command was found"];
    - Environment Symptom "package-missing": r"^(?:ERROR: )?(?:Could not find a version that satisfies the requirement|No matching distribution found for|Failed (?:to build|building wheel)|ResolutionImpossible|Cannot install \S+ because )|^error: (?:subprocess-exited-with-error|metadata-generation-failed)|PackagesNotFoundError|^E: Unable to locate package",
        "a package could not be installed",
        "Check its name and version, and that the node reaches the package index. Let a failure of `setup` end the job (`set -e`).",
        ["ERROR: Could not find a version that satisfies the requirement mesh-tools==7.1 (from versions: 6.9, 7.0)",
         "ERROR: No matching distribution found for mesh-tools==7.1", "ERROR: Cannot install mesh-tools==7.1 because these package versions have conflicting dependencies.", "E: Unable to locate package libmesh7"],
        ["WARNING: Skipping mesh-tools as it is not installed.", "Cannot install the signal handler"];
    - Code Symptom "build": r"^\S+\.(?:c|cc|cpp|cxx|cu|cuh|h|hh|hpp|f|f90|F90|hip|rs|go):\d+(?::\d+)?: (?:fatal )?error: |^\S+\.(?:cu|cuh|h|hpp)\(\d+\): (?:catastrophic )?error: |: undefined reference to |^nvcc fatal|No rule to make target|^error\[E\d+\]: ",
        "the source code could not be compiled",
        "Read the message of the compiler, and check the versions of the compiler and of what is included.",
        ["mesh/adapt.cpp:91:14: error: 'refine' was not declared in this scope", "kernels/scan.cu(40): error: identifier \"warp\" is undefined",
         "/usr/bin/ld: adapt.o:adapt.c:(.text+0x1f): undefined reference to `refine'", "make: *** No rule to make target 'adapt.c', needed by 'adapt.o'.  Stop."],
        ["mesh/adapt.cpp:91:14: warning: unused variable 'error'", "main.c:12: the error: 0.3"];
    - Code Echo "build-ended": r"^(?:g?make|ninja)(?:\[\d+\])?: (?:\*\*\* |build stopped: )|^collect2: error: ld returned",
        "the build of a program failed",
        "Read the messages of the build before this line.",
        ["make[1]: *** [Makefile:12: adapt.o] Error 1", "ninja: build stopped: subcommand failed.", "collect2: error: ld returned 1 exit status"],
        ["make: *** No rule to make target 'adapt.c', needed by 'adapt.o'.  Stop.", "make: Nothing to be done for 'all'."];
    - Code Cause "shell-limit": r"(?i:\b(?:cpu time|file size) limit exceeded\b)",
        "a process reached a limit that the shell or the site sets (ulimit)",
        "Look at `ulimit -a` in the job, and raise the limit there or ask the site.",
        ["run.sh: line 8: 4211 CPU time limit exceeded (core dumped) ./mesh", "run.sh: line 8:  4211 File size limit exceeded ./mesh > out"],
        ["the time limit of the solver is 30 s of CPU time"];
    - Code Cause "mpi-slots": r"There are not enough slots available in the system",
        "mpirun was asked for more processes than it has slots",
        "Start fewer processes, or request more tasks for each node.",
        ["There are not enough slots available in the system to satisfy the 16"],
        ["every slot of the system is in use"];
    - Environment Symptom "mpi-program": r"\b(?:mpirun|mpiexec|orterun|prterun) was unable to (?:launch|find|start) the specified (?:application|executable)",
        "mpirun could not find the program, or may not run it",
        "Check the path that the next lines name, and that it is the same on every node.",
        ["mpirun was unable to launch the specified application as it could not access",
         "prterun was unable to find the specified executable file, and therefore did not"],
        ["mpirun was unable to find an available slot"];
}
