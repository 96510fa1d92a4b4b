//! The table: a text on stderr → its class. The first match counts, so ambiguous texts come before certain ones, and
//! limits that a job can never meet before the general "violates policy".
//!
//! The texts are from `slurm_errno.c`, `sbatch.c`, and the output of 22.05.8 and 24.11.

use super::{FailureClass, Rule};

macro_rules! rules {
    ($($class:ident $id:literal: $needle:literal, $why:literal, [$($example:literal),+ $(,)?];)*) => {
        /// All rules, in the order in which they are tried.
        pub const RULES: &[Rule] = &[$(Rule {
            id: $id,
            needle: $needle,
            class: FailureClass::$class,
            why: $why,
            examples: &[$($example),+],
        }),*];
    };
}

rules! {
    // The request may have been received.
    Ambiguous "socket-timeout": "Socket timed out on send/recv operation",
        "slurmctld may still handle the request later: on 22.05 the job ran",
        ["sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"];
    Ambiguous "receive-failure": "Unable to contact slurm controller (receive failure)",
        "the request arrived and only the reply is missing",
        ["sbatch: error: Batch job submission failed: Unable to contact slurm controller (receive failure)"];
    Ambiguous "send-failure": "Unable to contact slurm controller (send failure)",
        "a part of the request, or all of it, may have arrived",
        ["sbatch: error: Batch job submission failed: Unable to contact slurm controller (send failure)"];
    Ambiguous "zero-bytes": "Zero Bytes were transmitted or received",
        "the connection was closed without a reply",
        ["sbatch: error: Batch job submission failed: Zero Bytes were transmitted or received"];
    Ambiguous "unexpected-message": "Unexpected message received",
        "the reply was not understood",
        ["sbatch: error: Batch job submission failed: Unexpected message received"];

    // The request was not accepted.
    NotDone "connect-failure": "Unable to contact slurm controller (connect failure)",
        "no connection, so no request: after 9 s on 22.05",
        ["sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)",
         "slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
         "scancel: error: Kill job error on job id 1: Unable to contact slurm controller (connect failure)"];
    NotDone "rate-limit": "Rate limit exceeded, please retry",
        "rl_enable of Slurm 23.02 and later rejects the request before it is read",
        ["slurm_load_jobs error: Rate limit exceeded, please retry momentarily",
         "sbatch: error: Batch job submission failed: Rate limit exceeded, please retry momentarily",
         "scancel: error: Kill job error on job id 21: Rate limit exceeded, please retry momentarily",
         "slurm_load_jobs error: Rate limit exceeded, please retry later"];
    NotDone "standby-controller": "Slurm backup controller in standby mode",
        "a backup controller rejects everything until it takes over",
        ["slurm_load_jobs error: Slurm backup controller in standby mode"];
    NotDone "job-not-known": "Invalid job id specified",
        "the controller has forgotten the job (MinJobAge), so there was nothing to act on",
        ["slurm_load_jobs error: Invalid job id specified"];
    NotDone "job-over": "Job/step already completing or completed",
        "the job has already ended (slurm_errno.c)",
        ["scancel: error: Kill job error on job id 21: Job/step already completing or completed"];
    NotDone "question-cut": "did not arrive whole",
        "one of our own programs received incomplete input, and stopped before it did anything",
        ["the entries did not arrive whole"];

    // Broken path or site.
    Infra "spool-write": "I/O error writing script/environment to file",
        "the disk of slurmctld's state is full or gone",
        ["sbatch: error: Batch job submission failed: I/O error writing script/environment to file"];
    Infra "munge-credential": "Invalid authentication credential",
        "munge: wrong key, wrong clock, or not running",
        ["sbatch: error: Batch job submission failed: Invalid authentication credential"];
    Infra "munge-protocol": "Protocol authentication error",
        "munge: wrong key, wrong clock, or not running",
        ["slurm_load_jobs error: Protocol authentication error"];
    Infra "munge-connect": "Munge encode failed",
        "munged is not running on the login node",
        ["sbatch: error: Munge encode failed: Failed to access \"/run/munge/munge.socket.2\": No such file or directory"];
    Infra "version-skew": "Incompatible versions of client and server code",
        "the site is in the middle of an upgrade",
        ["slurm_load_jobs error: Incompatible versions of client and server code"];
    Infra "config-fetch": "Could not establish a configuration source",
        "a configless login node cannot reach slurmctld for its slurm.conf",
        ["sbatch: fatal: Could not establish a configuration source"];
    Infra "accounting-unreachable": "Problem talking to the database",
        "slurmdbd is down; sbatch and squeue are not affected",
        ["sacct: error: Problem talking to the database: Connection refused"];
    Infra "accounting-disabled": "Slurm accounting storage is disabled",
        "the site runs without slurmdbd",
        ["Slurm accounting storage is disabled"];
    Infra "accounting-unsupported": "not running a supported accounting_storage",
        "sacctmgr on a site without slurmdbd (sacctmgr.c)",
        ["You are not running a supported accounting_storage plugin"];
    Infra "no-such-program": "failed to run command",
        "timeout(1) could not start the program: Slurm is not on this login node's PATH",
        ["timeout: failed to run command 'sbatch': No such file or directory"];
    Infra "disk-full": "No space left on device",
        "ENOSPC where we stage files",
        ["mkdir: cannot create directory '/lustre/u/state': No space left on device"];
    Infra "disk-quota": "Disk quota exceeded",
        "EDQUOT where we stage files",
        ["head: error writing 'standard output': Disk quota exceeded"];
    Infra "stale-handle": "Stale file handle",
        "ESTALE: the login node's mount is broken",
        ["mv: cannot stat '/lustre/u/state': Stale file handle"];
    Infra "io-error": "Input/output error",
        "EIO: the file system is broken",
        ["mkdir: cannot create directory '/lustre/u': Input/output error"];
    Infra "read-only": "Read-only file system",
        "EROFS: the site mounted it so, usually after an error",
        ["mkdir: cannot create directory '/lustre/u': Read-only file system"];
    Infra "directory-forbidden": ": Permission denied",
        "the configured directory is not ours to write to (Slurm itself says `Access/permission denied`)",
        ["mkdir: cannot create directory '/lustre/u': Permission denied"];
    Infra "script-missing": "Unable to open file",
        "the script existed when it was staged: the file system lags",
        ["sbatch: error: Unable to open file /lustre/u/sbatch/job.sbatch"];

    // Limits that this request can never meet.
    Permanent "wall-limit": "MaxWallDurationPerJobLimit",
        "the requested time is above the limit of the association or QOS per job",
        ["sbatch: error: QOSMaxWallDurationPerJobLimit\n\
          sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"];
    Permanent "job-size-limit": "PerJobLimit",
        "the requested size is above the limit of the association or QOS per job",
        ["sbatch: error: AssocMaxNodePerJobLimit\n\
          sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"];

    // Full at the moment.
    Capacity "association-submit-limit": "AssocMaxSubmitJobLimit",
        "too many jobs in the queue; some may be the user's own",
        ["sbatch: error: AssocMaxSubmitJobLimit\n\
          sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"];
    Capacity "qos-submit-limit": "QOSMaxSubmitJobPerUserLimit",
        "too many jobs in the queue; some may be the user's own",
        ["sbatch: error: QOSMaxSubmitJobPerUserLimit\n\
          sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"];
    Capacity "policy": "Job violates accounting/QOS policy",
        "the limit is not named: usually the number of jobs",
        ["sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"];
    Capacity "queue-full": "Slurm temporarily unable to accept job",
        "MaxJobCount is reached; sbatch has already retried for up to 120 s",
        ["sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying"];
    Capacity "node-unavailable": "Required node not available (down, drained or reserved)",
        "the nodes may come back",
        ["sbatch: error: Batch job submission failed: Required node not available (down, drained or reserved)"];
    Capacity "partition-inactive": "Required partition not available (inactive or drain)",
        "an administrator closed it, usually for maintenance",
        ["sbatch: error: Batch job submission failed: Required partition not available (inactive or drain)"];

    // Wrong requests.
    Permanent "account-or-partition": "Invalid account or account/partition combination",
        "slurm_errno.c",
        ["sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified"];
    Permanent "partition-name": "Invalid partition name specified",
        "slurm_errno.c",
        ["sbatch: error: invalid partition specified: nopart\n\
          sbatch: error: Batch job submission failed: Invalid partition name specified"];
    Permanent "partition-specified": "invalid partition specified",
        "the same, when only the first line arrives",
        ["sbatch: error: invalid partition specified: nopart"];
    Permanent "partition-group": "User's group not permitted to use this partition",
        "slurm_errno.c",
        ["sbatch: error: Batch job submission failed: User's group not permitted to use this partition"];
    Permanent "time-limit": "Requested time limit is invalid",
        "the partition allows less, and EnforcePartLimits rejects the job at once",
        ["sbatch: error: Batch job submission failed: Requested time limit is invalid (missing or exceeds some limit)"];
    Permanent "node-name": "Invalid node name",
        "the exclude list may name a node of another cluster, or one that was renamed",
        ["sbatch: error: Batch job submission failed: Invalid node name specified"];
    Permanent "qos": "Invalid qos specification",
        "slurm_errno.c",
        ["sbatch: error: Batch job submission failed: Invalid qos specification"];
    Permanent "node-configuration": "Requested node configuration is not available",
        "no node of the partition has so many GPUs, CPUs or so much memory",
        ["sbatch: error: Memory specification can not be satisfied\n\
          sbatch: error: Batch job submission failed: Requested node configuration is not available"];
    Permanent "node-count": "Node count specification invalid",
        "the partition has fewer nodes",
        ["sbatch: error: Batch job submission failed: Node count specification invalid"];
    Permanent "gres": "Invalid generic resource",
        "the partition has no such GPUs",
        ["sbatch: error: Batch job submission failed: Invalid generic resource (gres) specification"];
    Permanent "processors": "More processors requested than permitted",
        "slurm_errno.c",
        ["sbatch: error: CPU count per node can not be satisfied\n\
          sbatch: error: Batch job submission failed: More processors requested than permitted"];
    Permanent "feature": "Invalid feature specification",
        "slurm_errno.c",
        ["sbatch: error: Batch job submission failed: Invalid feature specification"];
    Permanent "dependency": "Job dependency problem",
        "24.11 rejects a dependency on an unknown job; 22.05 accepts it",
        ["sbatch: error: Batch job submission failed: Job dependency problem"];
    Permanent "access-denied": "Access/permission denied",
        "another user's job, or an option for administrators",
        ["scancel: error: Kill job error on job id 21: Access/permission denied",
         "sbatch: error: rebooting of nodes is only allowed for admins\n\
          sbatch: error: Batch job submission failed: Access/permission denied"];
    Permanent "script-empty": "Batch script is empty",
        "the size of the script was checked just before, so the file system does not lag",
        ["sbatch: error: Batch script is empty!"];
    Permanent "script-shebang": "This does not look like a batch script",
        "no #! in the first line",
        ["sbatch: error: This does not look like a batch script.  The first\n\
          sbatch: error: line must start with #! followed by the path to an interpreter."];
    Permanent "script-line-ends": "Batch script contains DOS line breaks",
        "sbatch rejects CR LF",
        ["sbatch: error: Batch script contains DOS line breaks (\\r\\n)\n\
          sbatch: error: instead of expected UNIX line breaks (\\n)."];
    Permanent "script-too-large": "Pathname of a file, directory or other parameter too long",
        "a script above max_script_size (4 MB by default)",
        ["sbatch: error: Batch job submission failed: Pathname of a file, directory or other parameter too long"];
    Permanent "option-unknown": "unrecognized option",
        "an option that needs a newer Slurm, or a plugin that is missing",
        ["sbatch: unrecognized option '--container-bogus'\nTry \"sbatch --help\" for more information"];

    // Says nothing about the request that was sent after the wait.
    Ambiguous "rate-limit-waited": "RPC rate limited",
        "with SLURM_DEBUG the commands report each refusal, and then retry without end (slurm_protocol_api.c)",
        ["sbatch: RPC rate limited 3 time(s). Sleeping then trying again."];
}
