//! The table: Slurm's pending reason → its meaning. From squeue(1) and the strings of 22.05 and 24.11; the first match
//! counts.

use std::borrow::Cow;

use super::{
    Explanation,
    Holder::{
        Association, Dependency, Hold, Licenses, Nodes, Partition, Priority, Qos, Request, Reservation,
        Resources, Slurm, Time,
    },
    Outlook::{Hopeless, NeedsAction, Waits},
    Word,
};

macro_rules! words {
    ($($outlook:ident $holder:ident $word:literal $(limit $limit:literal)?: $meaning:literal, $advice:literal;)*) => {
        /// All reasons, in the order in which they are tried.
        pub const WORDS: &[Word] = &[$(Word {
            word: $word,
            means: Explanation {
                holder: $holder,
                limit: words!(@limit $($limit)?),
                outlook: $outlook,
                meaning: Cow::Borrowed($meaning),
                advice: $advice,
            },
        }),*];
    };
    (@limit) => { None };
    (@limit $limit:literal) => { Some(Cow::Borrowed($limit)) };
}

words! {
    // The ordinary wait.
    Waits Priority "Priority":
        "jobs of higher priority come first",
        "Wait; `sprio -j ID` shows the job's priority.";
    Waits Resources "Resources":
        "the requested resources are in use, and the job is next in line",
        "Wait, or request less.";
    Waits Licenses "Licenses":
        "the licenses that it needs are in use",
        "Wait; `scontrol show licenses` lists the free ones.";
    Waits Slurm "None":
        "the scheduler has not evaluated it yet",
        "Wait.";
    Waits Slurm "WaitingForScheduling":
        "the scheduler has not evaluated it yet",
        "Wait.";
    Waits Slurm "SchedDefer":
        "the scheduler has not evaluated it yet",
        "Wait.";
    Waits Slurm "Prolog":
        "Slurm is preparing its nodes",
        "Wait.";
    Waits Slurm "Cleaning":
        "Slurm is still cleaning up its last run",
        "Wait; if it takes long, a node hangs: ask the site's administrator.";
    Waits Slurm "FedJobLock":
        "the federation is selecting a cluster for it",
        "Wait.";
    Waits Resources "MpiPortsBusy":
        "the MPI ports that it needs are in use",
        "Wait.";
    Waits Nodes "MaxPoweredUpNodes":
        "the site's limit of powered-up nodes is reached",
        "Wait.";
    Waits Nodes "PowerNotAvail":
        "there is not enough electrical power for it",
        "Wait.";
    Waits Nodes "PowerReserved":
        "the electrical power that it needs is reserved",
        "Wait.";
    Waits Resources "BurstBufferResources":
        "the burst buffer has no space for it",
        "Wait.";
    Waits Resources "BurstBufferStageIn":
        "its data is being staged into the burst buffer",
        "Wait.";
    NeedsAction Resources "BurstBufferOperation":
        "the burst buffer failed",
        "Ask the site's administrator.";

    // Time and other jobs.
    Waits Time "BeginTime":
        "its earliest start time has not come; Slurm delays a job after a requeue",
        "Wait; `scontrol update JobId=ID StartTime=now` ends the wait.";
    Waits Dependency "Dependency":
        "it depends on another job that has not finished",
        "Wait; `squeue -j ID -O Dependency` shows which one.";
    Hopeless Dependency "DependencyNeverSatisfied":
        "a job that it depends on failed",
        "Cancel it, or remove the dependency: `scontrol update JobId=ID Dependency=`.";
    Waits Dependency "JobArrayTaskLimit":
        "the task limit of its job array is reached",
        "Wait.";
    Hopeless Time "DeadLine":
        "it can no longer end before its deadline",
        "Cancel it, and submit it with a later deadline.";

    // Reservations.
    Waits Reservation "Reservation":
        "its reservation has not started, or is fully used",
        "Wait; `scontrol show reservation` shows its times.";
    Hopeless Reservation "ReservationDeleted":
        "its reservation was deleted",
        "Cancel it, and submit it without a reservation.";
    Hopeless Reservation "ReservationInvalid":
        "its reservation is not valid for it",
        "Cancel it, and submit it without a reservation.";

    // Nodes.
    Waits Nodes "ReqNodeNotAvail, Reserved for maintenance":
        "nodes that it needs are reserved for maintenance before it could finish",
        "Wait, or request less time; `scontrol show reservation` shows the times.";
    Waits Nodes "ReqNodeNotAvail, May be reserved":
        "nodes that it needs may be reserved for other jobs",
        "Wait, or name no nodes.";
    NeedsAction Nodes "ReqNodeNotAvail":
        "nodes that it needs are not available: in use, reserved, down or drained",
        "`sinfo -R` lists the nodes that are down or drained, with the reasons. Ask the site's administrator.";
    NeedsAction Nodes "Nodes required for job are DOWN":
        "nodes that it needs are in use, reserved for jobs that come first, down or drained",
        "`sinfo -R` lists the nodes that are down or drained, with the reasons. Ask the site's administrator.";
    NeedsAction Nodes "NodeDown":
        "a node that it needs is down",
        "`sinfo -R` shows the reason. Ask the site's administrator.";
    NeedsAction Nodes "FrontEndDown":
        "no front-end node is up",
        "Ask the site's administrator.";
    Hopeless Nodes "BadConstraints":
        "no node has what it requests",
        "Cancel it, and request what the nodes have: GET /clusters/NAME/partitions.";

    // Partitions.
    Hopeless Partition "PartitionTimeLimit" limit "MaxTime":
        "it requests more time than its partition allows",
        "Cancel it, and submit it with less time or to another partition: GET /clusters/NAME/partitions.";
    Hopeless Partition "PartitionNodeLimit" limit "MaxNodes":
        "it requests more nodes than its partition allows or has up",
        "Cancel it, and submit it with fewer nodes or to another partition: GET /clusters/NAME/partitions.";
    NeedsAction Partition "PartitionDown":
        "its partition is down",
        "Wait for the site's administrator, or submit it to another partition.";
    NeedsAction Partition "PartitionInactive":
        "its partition accepts no jobs at the moment",
        "Wait for the site's administrator, or submit it to another partition.";
    NeedsAction Partition "PartitionConfig":
        "its partition does not allow what it requests",
        "`scontrol show partition` shows its rules. Submit it to another partition.";
    Hopeless Partition "AccountNotAllowed" limit "AllowAccounts":
        "its partition does not accept jobs of its account",
        "Cancel it, and submit it with another account or to another partition.";
    Hopeless Partition "QOSNotAllowed" limit "AllowQos":
        "its partition or account does not accept jobs of its QOS",
        "Cancel it, and submit it with another QOS or to another partition.";
    Hopeless Partition "MaxMemPerLimit" limit "MaxMemPerNode":
        "it requests more memory than its partition allows",
        "Cancel it, and submit it with less memory.";

    // Accounts and QOS, except for limits on one resource (see `limits`).
    Hopeless Association "InvalidAccount":
        "its account is no longer valid",
        "Cancel it, and submit it with another account.";
    Hopeless Qos "InvalidQOS":
        "its QOS is no longer valid",
        "Cancel it, and submit it with another QOS.";
    Waits Association "AccountingPolicy":
        "a limit of its account or QOS is reached",
        "Wait, or ask the site to raise the limit.";
    Waits Association "AssociationJobLimit" limit "MaxJobs":
        "its association (account and user) has reached its limit of running jobs",
        "Wait, or ask the site to raise the limit.";
    Waits Association "AssociationResourceLimit" limit "GrpTRES":
        "its association (account and user) has reached a resource limit",
        "Wait, or ask the site to raise the limit.";
    NeedsAction Association "AssociationTimeLimit" limit "GrpTRESMins":
        "its association (account and user) has used up its time",
        "Ask the site's administrator for more.";
    Waits Qos "QOSJobLimit" limit "GrpJobs":
        "its QOS has reached its limit of running jobs",
        "Wait, or ask the site to raise the limit.";
    Waits Qos "QOSResourceLimit" limit "GrpTRES":
        "its QOS has reached a resource limit",
        "Wait, or ask the site to raise the limit.";
    NeedsAction Qos "QOSTimeLimit" limit "GrpTRESMins":
        "its QOS has used up its time",
        "Ask the site's administrator for more.";
    NeedsAction Qos "QOSUsageThreshold" limit "UsageThreshold":
        "the usage of its account is above the limit of its QOS",
        "Wait until the usage has decayed (`sshare`), or use another QOS.";

    // Held.
    NeedsAction Hold "JobHeldUser":
        "its user holds the job",
        "Release it with `scontrol release ID` as that user.";
    NeedsAction Hold "JobHeldAdmin":
        "an administrator holds the job",
        "Only an administrator can release it: `scontrol release ID`.";
    NeedsAction Hold "JobHoldMaxRequeue" limit "max_batch_requeue":
        "several launches in a row failed, so Slurm holds the job",
        "Fix the cause, then release it with `scontrol release ID`.";
    NeedsAction Hold "launch failed requeued held":
        "the launch failed, so Slurm holds the job",
        "Fix the cause (see the nodes' slurmd logs), then release it with `scontrol release ID`.";
    NeedsAction Hold "user env retrieval failed requeued held":
        "the user's environment could not be loaded, so Slurm holds the job",
        "Make the user's login shell start quickly and without errors, then release it with `scontrol release ID`.";
    NeedsAction Hold "job requeued in held state":
        "it was requeued and is held",
        "Release it with `scontrol release ID`.";
    NeedsAction Hold "job requeued in special exit state":
        "it was requeued and is held because of its exit code",
        "Release it with `scontrol release ID`.";

    // Reasons of a requeued job's last run.
    Waits Slurm "JobLaunchFailure":
        "its last launch failed",
        "Wait; if it happens again, see the nodes' slurmd logs.";
    Waits Slurm "NonZeroExitCode":
        "its last run ended with an error",
        "Wait.";
    Waits Slurm "RaisedSignal":
        "a signal ended its last run",
        "Wait.";
    Waits Slurm "OutOfMemory":
        "its last run ran out of memory",
        "Wait.";
    Waits Time "TimeLimit":
        "its last run reached its time limit",
        "Wait.";
    Waits Time "InactiveLimit" limit "InactiveLimit":
        "its last run was idle for longer than Slurm allows",
        "Wait.";
    NeedsAction Slurm "SystemFailure":
        "Slurm, a file system or the network failed",
        "Ask the site's administrator.";

    // Reasons of obsolete machines (22.05).
    NeedsAction Request "BlockMaxError":
        "its block of nodes failed too often",
        "Ask the site's administrator.";
    NeedsAction Request "BlockFreeAction":
        "its block of nodes is being freed",
        "Ask the site's administrator.";
}
