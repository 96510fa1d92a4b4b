//! What a person is told about a job that waits in Slurm's queue.

use slurm::SlurmState;

/// Slurm's reasons (squeue(1), JOB REASON CODES) that say more than "wait": each with what it means for the job.
const TELLING: [(&str, &str); 13] = [
    ("DependencyNeverSatisfied", "what it depends on has failed, so it can never start; cancel it"),
    (
        "PartitionTimeLimit",
        "it asks for more time than its partition allows, so it can never start; cancel it",
    ),
    (
        "PartitionNodeLimit",
        "it asks for more nodes than its partition allows, so it can never start; cancel it",
    ),
    ("PartitionDown", "its partition is down"),
    ("PartitionInactive", "its partition takes no jobs at the moment"),
    ("BadConstraints", "no node has what it asks for; cancel it"),
    ("InvalidAccount", "its account is not valid any more; cancel it"),
    ("InvalidQOS", "its QOS is not valid any more; cancel it"),
    ("ReqNodeNotAvail", "nodes that it needs are not available"),
    ("BeginTime", "Slurm lets it wait for a while, as it does after a requeue"),
    ("Assoc", "its account or user has reached a limit"),
    ("QOS", "its QOS has reached a limit"),
    ("Priority", "jobs of higher priority come first"),
];

/// A sentence about a job in `state`, which waits for `reason`.
pub(crate) fn pending_message(state: &SlurmState, reason: &str) -> String {
    if is_held(state, reason) {
        return format!("Held on the cluster ({reason}); an administrator or the user has to release it.");
    }
    if matches!(state, SlurmState::Configuring | SlurmState::PowerUpNode) {
        return "The nodes are being made ready.".to_owned();
    }
    if matches!(reason, "None" | "") {
        return "Waiting in Slurm's queue.".to_owned();
    }
    // Some reasons have more behind them: `ReqNodeNotAvail, UnavailableNodes:node02`, `AssocGrpGRES`.
    match TELLING.iter().find(|(word, _)| reason.starts_with(word)) {
        Some((_, meaning)) => format!("Waiting in Slurm's queue: {meaning} ({reason})."),
        None => format!("Waiting in Slurm's queue: {reason}."),
    }
}

fn is_held(state: &SlurmState, reason: &str) -> bool {
    matches!(state, SlurmState::RequeueHold | SlurmState::SpecialExit | SlurmState::ResvDelHold)
        || reason.starts_with("JobHeld")
        || reason.contains("held")
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("None" => "Waiting in Slurm's queue.")]
    #[test_case("Resources" => "Waiting in Slurm's queue: Resources.")]
    #[test_case("JobHeldAdmin" => "Held on the cluster (JobHeldAdmin); an administrator or the user has to release it.")]
    #[test_case("launch failed requeued held" => "Held on the cluster (launch failed requeued held); an administrator or the user has to release it.")]
    #[test_case("DependencyNeverSatisfied" => "Waiting in Slurm's queue: what it depends on has failed, so it can never start; cancel it (DependencyNeverSatisfied).")]
    #[test_case("AssocGrpGRES" => "Waiting in Slurm's queue: its account or user has reached a limit (AssocGrpGRES).")]
    fn a_reason_is_a_sentence(reason: &str) -> String {
        pending_message(&SlurmState::Pending, reason)
    }
}
