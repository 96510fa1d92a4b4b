//! What each recording says.

/// The state, as `record` calls it; what squeue says, with its reason; what sacct says, with the exit code.
pub(crate) type Expected = (&'static str, &'static str, &'static str);

pub(crate) const EVERYWHERE: &[Expected] = &[
    ("begin_time", "PENDING BeginTime", "PENDING 0:0"),
    ("canceled_by_root", "CANCELLED None", "CANCELLED 0:0"),
    ("canceled_by_user", "CANCELLED None", "CANCELLED 0:0"),
    ("canceled_while_pending", "CANCELLED JobHeldUser", "CANCELLED 0:0"),
    ("completed", "COMPLETED None", "COMPLETED 0:0"),
    // Accounting has the end before the controller does.
    ("completing", "COMPLETING None", "CANCELLED 0:0"),
    ("deadline", "DEADLINE DeadLine", "DEADLINE 1:0"),
    ("dependency_canceled", "CANCELLED DependencyNeverSatisfied", "CANCELLED 0:0"),
    ("dependency_never_satisfied", "PENDING DependencyNeverSatisfied", "PENDING 0:0"),
    ("exit_3", "FAILED NonZeroExitCode", "FAILED 3:0"),
    ("held", "PENDING JobHeldUser", "PENDING 0:0"),
    ("held_by_admin", "PENDING JobHeldAdmin", "PENDING 0:0"),
    ("node_fail_running_again", "RUNNING None", "RUNNING 0:0"),
    ("out_of_memory", "OUT_OF_MEMORY OutOfMemory", "OUT_OF_MEMORY 0:125"),
    ("preempted_cancel", "PREEMPTED None", "PREEMPTED 0:0"),
    ("preempted_no_requeue", "PREEMPTED None", "PREEMPTED 0:0"),
    ("preempted_running_again", "RUNNING None", "RUNNING 0:0"),
    ("requeued_running_again", "RUNNING None", "RUNNING 0:0"),
    ("requeuehold", "PENDING job requeued in held state", "PENDING 0:0"),
    ("running", "RUNNING None", "RUNNING 0:0"),
    ("suspended", "SUSPENDED None", "SUSPENDED 0:0"),
    ("timeout", "TIMEOUT TimeLimit", "TIMEOUT 0:0"),
];

pub(crate) const ONLY_22_05: &[Expected] = &[
    // A job has no record before it may run, and for a while after.
    ("dependency", "PENDING Dependency", "nothing"),
    ("resources", "PENDING Resources", "nothing"),
    ("no_output_directory", "FAILED JobLaunchFailure", "FAILED 0:53"),
    ("over_memory", "FAILED JobLaunchFailure", "FAILED 0:9"),
    ("signal_15", "FAILED JobLaunchFailure", "FAILED 0:15"),
    ("signal_9", "FAILED JobLaunchFailure", "FAILED 0:9"),
    ("node_fail", "NODE_FAIL NodeDown", "NODE_FAIL 0:0"),
    // Back in the queue, a job still has the record of the run before.
    ("node_fail_requeued", "PENDING BeginTime", "NODE_FAIL 0:0"),
    ("preempted_requeued", "PENDING BeginTime", "PREEMPTED 0:0"),
    ("requeued", "PENDING BeginTime", "REQUEUED 0:0"),
    ("special_exit", "SPECIAL_EXIT job requeued in held state", "REQUEUED 0:0"),
];

pub(crate) const ONLY_24_11: &[Expected] = &[
    ("dependency", "PENDING Dependency", "PENDING 0:0"),
    ("resources", "PENDING Resources", "PENDING 0:0"),
    ("no_output_directory", "FAILED RaisedSignal:53(Real-time signal 19)", "FAILED 0:53"),
    ("over_memory", "FAILED RaisedSignal:9(Killed)", "FAILED 0:9"),
    ("signal_15", "FAILED RaisedSignal:15(Terminated)", "FAILED 0:15"),
    ("signal_9", "FAILED RaisedSignal:9(Killed)", "FAILED 0:9"),
    ("node_fail", "NODE_FAIL NodeDown", "NODE_FAIL 1:0"),
    ("node_fail_requeued", "PENDING BeginTime", "PENDING 0:0"),
    ("preempted_requeued", "PENDING BeginTime", "PENDING 0:0"),
    ("requeued", "PENDING BeginTime", "PENDING 0:0"),
    ("special_exit", "SPECIAL_EXIT job requeued in held state", "PENDING 0:0"),
];
