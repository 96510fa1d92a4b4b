//! A controller that has lost its state gives ids anew: what Slurm knows by a job's id may be another's.

use std::fs;

use remote::BatchScript;
use slurm::RunTime;
use test_case::test_case;

use crate::node::{Node, stderr};

#[test_case("other")]
#[test_case("job-10")]
#[test_case("a-job-1")]
#[test_case("a JobName=job-1"; "a name that holds ours")]
fn what_slurm_tells_of_another_job_does_not_put_this_one_back(name: &str) {
    let node = Node::new();
    let told = format!("JobId=42 JobName={name} JobState=COMPLETING PreemptTime=None \n");
    fs::write(node.file("told"), told).unwrap();
    let output = node.run(&node.script(&["true"]), 42, 0);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(node.words("state/exit")[..3], ["42", "0", "0"]);
}

#[test_case("JobId=42 JobName=other JobState=RUNNING PreemptTime=None \n"; "another has its id")]
#[test_case(""; "nobody has it")]
fn at_its_limit_a_job_puts_no_other_back_into_the_queue(told: &str) {
    let node = Node::new();
    fs::write(node.file("told"), told).unwrap();
    // Slurm is not asked to end it either, so it ends by itself.
    let program = node.script(&["bash", "-c", "sleep 4; exit 1"]);
    let script = BatchScript { soft_timeout: RunTime::from_seconds(1), ..program };
    let output = node.run(&script, 42, 0);
    assert_eq!(output.status.code(), Some(124), "{}", stderr(&output));
    assert!(!node.read("scontrol.calls").contains("requeue"), "{}", node.read("scontrol.calls"));
    assert!(!node.has("scancel.calls"), "{}", node.read("scancel.calls"));
    assert!(!node.has("state/requeued"), "it does not count");
    assert_eq!(node.words("state/exit")[2], "124");
}
