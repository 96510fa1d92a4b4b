//! The table: Slurm's word → what it means for a job. From squeue(1) and from what 22.05 and 24.11 can say; the first
//! line that fits counts.

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
        /// Every word, in the order they are tried.
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
        "Wait; `sprio -j ID` shows what its priority is made of.";
    Waits Resources "Resources":
        "what it asks for is in use, and it is next in line",
        "Wait, or ask for less.";
    Waits Licenses "Licenses":
        "licenses that it needs are in use",
        "Wait; `scontrol show licenses` shows which are free.";
    Waits Slurm "None":
        "the scheduler has not looked at it yet",
        "Wait.";
    Waits Slurm "WaitingForScheduling":
        "the scheduler has not looked at it yet",
        "Wait.";
    Waits Slurm "SchedDefer":
        "the scheduler has not looked at it yet",
        "Wait.";
    Waits Slurm "Prolog":
        "its nodes are being made ready",
        "Wait.";
    Waits Slurm "Cleaning":
        "its last run is still being cleared away",
        "Wait; if it takes long, a node hangs: the site's administrator has to look.";
    Waits Slurm "FedJobLock":
        "the clusters of the federation are deciding where it runs",
        "Wait.";
    Waits Resources "MpiPortsBusy":
        "the ports that it needs for MPI are in use",
        "Wait.";
    Waits Nodes "MaxPoweredUpNodes":
        "as many nodes are switched on as the site allows",
        "Wait.";
    Waits Nodes "PowerNotAvail":
        "there is not enough electrical power for it",
        "Wait.";
    Waits Nodes "PowerReserved":
        "the electrical power that it needs is reserved",
        "Wait.";
    Waits Resources "BurstBufferResources":
        "the burst buffer has no room for it",
        "Wait.";
    Waits Resources "BurstBufferStageIn":
        "its data are being brought into the burst buffer",
        "Wait.";
    NeedsAction Resources "BurstBufferOperation":
        "the burst buffer has failed it",
        "Ask the site's administrator.";

    // Time and other jobs.
    Waits Time "BeginTime":
        "its earliest start has not come: Slurm lets a job wait for a while after a requeue",
        "Wait; `scontrol update JobId=ID StartTime=now` ends the wait.";
    Waits Dependency "Dependency":
        "it depends on another job that has not come so far",
        "Wait; `squeue -j ID -O Dependency` says on which.";
    Hopeless Dependency "DependencyNeverSatisfied":
        "what it depends on has failed",
        "Cancel it, or take the dependency away: `scontrol update JobId=ID Dependency=`.";
    Waits Dependency "JobArrayTaskLimit":
        "as many tasks of its array run as it allows itself",
        "Wait.";
    Hopeless Time "DeadLine":
        "it can no longer end before its deadline",
        "Cancel it, and send it with another.";

    // Reservations.
    Waits Reservation "Reservation":
        "its reservation has not begun, or is fully used",
        "Wait; `scontrol show reservation` says from when to when it is.";
    Hopeless Reservation "ReservationDeleted":
        "the reservation that it names is gone",
        "Cancel it, and send it without one.";
    Hopeless Reservation "ReservationInvalid":
        "the reservation that it names is not valid for it",
        "Cancel it, and send it without one.";

    // Nodes.
    Waits Nodes "ReqNodeNotAvail, Reserved for maintenance":
        "nodes that it needs are reserved for maintenance before it would be through",
        "Wait, or ask for less time; `scontrol show reservation` says from when to when.";
    Waits Nodes "ReqNodeNotAvail, May be reserved":
        "nodes that it needs may be reserved for other jobs",
        "Wait, or name no nodes.";
    NeedsAction Nodes "ReqNodeNotAvail":
        "nodes that it needs are not available: in use, reserved, down or drained",
        "`sinfo -R` says which are down or drained and why; the site's administrator brings them back.";
    NeedsAction Nodes "Nodes required for job are DOWN":
        "nodes that it needs are down, drained or reserved for partitions of higher priority",
        "`sinfo -R` says which are down or drained and why; the site's administrator brings them back.";
    NeedsAction Nodes "NodeDown":
        "a node that it needs is down",
        "`sinfo -R` says why; the site's administrator brings it back.";
    NeedsAction Nodes "FrontEndDown":
        "no front end node is up",
        "Ask the site's administrator.";
    Hopeless Nodes "BadConstraints":
        "no node has what it asks for",
        "Cancel it, and ask for what the nodes have: GET /clusters/NAME/partitions.";

    // Partitions.
    Hopeless Partition "PartitionTimeLimit" limit "MaxTime":
        "it asks for more time than its partition allows",
        "Cancel it, and send it with less time or to another partition: GET /clusters/NAME/partitions.";
    Hopeless Partition "PartitionNodeLimit" limit "MaxNodes":
        "it asks for more nodes than its partition allows, or has up",
        "Cancel it, and send it with fewer nodes or to another partition: GET /clusters/NAME/partitions.";
    NeedsAction Partition "PartitionDown":
        "its partition is down",
        "Wait for the site's administrator, or send it to another partition.";
    NeedsAction Partition "PartitionInactive":
        "its partition takes no jobs at the moment",
        "Wait for the site's administrator, or send it to another partition.";
    NeedsAction Partition "PartitionConfig":
        "its partition does not allow what it asks for",
        "`scontrol show partition` shows its rules; send it to another partition.";
    Hopeless Partition "AccountNotAllowed" limit "AllowAccounts":
        "its partition does not take jobs of its account",
        "Cancel it, and send it with another account or to another partition.";
    Hopeless Partition "QOSNotAllowed" limit "AllowQos":
        "its partition or account does not take jobs of its QOS",
        "Cancel it, and send it with another QOS or to another partition.";
    Hopeless Partition "MaxMemPerLimit" limit "MaxMemPerNode":
        "it asks for more memory than its partition allows",
        "Cancel it, and send it with less.";

    // Accounts and QOS, beyond the limits that say what they are about.
    Hopeless Association "InvalidAccount":
        "its account is not valid any more",
        "Cancel it, and send it with another account.";
    Hopeless Qos "InvalidQOS":
        "its QOS is not valid any more",
        "Cancel it, and send it with another QOS.";
    Waits Association "AccountingPolicy":
        "a limit of its account or QOS is reached",
        "Wait, or ask for the limit to be raised.";
    Waits Association "AssociationJobLimit" limit "MaxJobs":
        "as many jobs of its association (account and user) run as are allowed",
        "Wait, or ask for the limit to be raised.";
    Waits Association "AssociationResourceLimit" limit "GrpTRES":
        "its association (account and user) has reached a limit on some resource",
        "Wait, or ask for the limit to be raised.";
    NeedsAction Association "AssociationTimeLimit" limit "GrpTRESMins":
        "its association (account and user) has used up its time",
        "Ask the site's administrator for more.";
    Waits Qos "QOSJobLimit" limit "GrpJobs":
        "as many jobs of its QOS run as are allowed",
        "Wait, or ask for the limit to be raised.";
    Waits Qos "QOSResourceLimit" limit "GrpTRES":
        "its QOS has reached a limit on some resource",
        "Wait, or ask for the limit to be raised.";
    NeedsAction Qos "QOSTimeLimit" limit "GrpTRESMins":
        "its QOS has used up its time",
        "Ask the site's administrator for more.";
    NeedsAction Qos "QOSUsageThreshold" limit "UsageThreshold":
        "its account has used so much that its QOS lets it start nothing more",
        "Wait until the usage has decayed (`sshare`), or use another QOS.";

    // Held.
    NeedsAction Hold "JobHeldUser":
        "its user has put it on hold",
        "`scontrol release ID` as that user lets it go.";
    NeedsAction Hold "JobHeldAdmin":
        "an administrator has put it on hold",
        "Only an administrator can release it: `scontrol release ID`.";
    NeedsAction Hold "JobHoldMaxRequeue" limit "max_batch_requeue":
        "it could not be launched several times in a row, so Slurm has put it on hold",
        "`scontrol release ID`, once what failed the launch is mended.";
    NeedsAction Hold "launch failed requeued held":
        "its launch has failed, so Slurm has put it on hold",
        "`scontrol release ID`, once what failed the launch is mended: the nodes' slurmd logs say what.";
    NeedsAction Hold "user env retrieval failed requeued held":
        "the user's environment could not be loaded, so Slurm has put it on hold",
        "`scontrol release ID`, once the user's login shell starts quickly and without errors.";
    NeedsAction Hold "job requeued in held state":
        "it was put back into the queue on hold",
        "`scontrol release ID` lets it go.";
    NeedsAction Hold "job requeued in special exit state":
        "it was put back into the queue on hold, for its exit code",
        "`scontrol release ID` lets it go.";

    // What a job that has run before and waits again may still bear.
    Waits Slurm "JobLaunchFailure":
        "its last launch has failed",
        "Wait; if it comes again, the nodes' slurmd logs say what failed.";
    Waits Slurm "NonZeroExitCode":
        "its last run ended with an error",
        "Wait.";
    Waits Slurm "RaisedSignal":
        "its last run was ended by a signal",
        "Wait.";
    Waits Slurm "OutOfMemory":
        "its last run ran out of memory",
        "Wait.";
    Waits Time "TimeLimit":
        "its last run has used up its time",
        "Wait.";
    Waits Time "InactiveLimit" limit "InactiveLimit":
        "its last run was idle for longer than Slurm allows",
        "Wait.";
    NeedsAction Slurm "SystemFailure":
        "Slurm, a file system or the network has failed it",
        "Ask the site's administrator.";

    // Of machines that nobody has any more (22.05).
    NeedsAction Request "BlockMaxError":
        "its block of nodes has failed too often",
        "Ask the site's administrator.";
    NeedsAction Request "BlockFreeAction":
        "its block of nodes is being freed",
        "Ask the site's administrator.";
}
