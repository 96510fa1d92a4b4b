//! A run that has ended well is marked as such, unless it is to go on later.

use std::{fs, os::unix::fs::PermissionsExt};

use test_case::test_case;

use crate::node::{Node, stderr};

#[test_case(" JobState=RUNNING PreemptTime=None ", true; "it runs")]
#[test_case(" JobState=PENDING PreemptTime=None ", true; "its start was forgotten")]
#[test_case("", true; "no answer")]
#[test_case(" JobState=COMPLETING PreemptTime=None ", false; "it was put back")]
#[test_case(" JobState=RUNNING Requeue=1 PreemptTime=2026-11-22T10:00:00 SuspendTime=None ", false; "it gives way")]
#[test_case(" JobState=RUNNING Requeue=0 PreemptTime=2026-11-22T10:00:00 SuspendTime=None ", true; "it is ended for another")]
#[test_case(" JobState=RUNNING Requeue=1 PreemptTime=2026-11-22T10:00:00 SuspendTime=2026-11-22T10:05:00 ", true; "it was suspended")]
#[test_case(" JobState=RUNNING Requeue=1 PreemptTime=2026-11-22T10:00:00 SuspendTime=2026-11-22T09:00:00 ", false; "it was suspended before, and gives way")]
#[test_case(" JobState=COMPLETING Requeue=0 PreemptTime=None ", true; "it is ended, and will not run again")]
fn a_run_that_goes_on_later_has_not_ended_well(told: &str, marked: bool) {
    let node = Node::new();
    let says = format!(
        "#!/bin/bash\nif [ \"$*\" = '-o show job 42' ]; then echo 'JobId=42 JobName=job-1{told}'; fi\n"
    );
    fs::write(node.file("bin/scontrol"), says).unwrap();
    let script = node.script(&["/bin/bash", "-c", "echo ran"]);
    assert_eq!(node.run(&script, 42, 0).status.code(), Some(0));
    assert_eq!(node.has("state/exit"), marked);
    let again = node.run(&script, 42, 1);
    assert_eq!((again.status.code(), again.stdout.is_empty()), (Some(0), marked), "{}", stderr(&again));
}

/// Signals come to every process of a script: they end the question whether it was put back, and what asks it.
#[test_case("", true; "Slurm has forgotten it")]
#[test_case(" JobState=RUNNING PreemptTime=None ", true; "it was no end")]
#[test_case(" JobState=COMPLETING PreemptTime=None ", false; "it was put back")]
fn what_ended_well_has_done_so_though_a_signal_comes_after_it(told: &str, marked: bool) {
    let node = Node::new();
    let asked = node.path("asked");
    let says = format!(
        "#!/bin/bash\nif [ -e {asked} ]; then echo 'JobId=42 JobName=job-1{told}'; exit; fi\n\
         touch {asked}\nkill -TERM \"$(cat {})\"\nexit 143\n",
        node.path("batch")
    );
    fs::write(node.file("bin/scontrol"), says).unwrap();
    let script = node.script(&["bash", "-c", &format!("echo $BATCH >{}", node.path("batch"))]);
    assert_eq!(node.run(&script, 42, 0).status.code(), Some(0));
    assert!(node.has("asked"));
    assert_eq!(node.has("state/exit"), marked);
    assert!(!marked || node.words("state/exit")[2] == "0", "{:?}", node.words("state/exit"));
}

#[test]
fn a_signal_does_not_end_those_who_write_the_mark() {
    let node = Node::new();
    // As to every process of a script.
    let says = format!(
        "#!/bin/bash\nif [ -s {batch} ]; then kill -TERM \"$(cat {batch})\" $$ 2>/dev/null; fi\nexec /bin/dd \"$@\"\n",
        batch = node.path("batch")
    );
    fs::write(node.file("bin/dd"), says).unwrap();
    fs::set_permissions(node.file("bin/dd"), fs::Permissions::from_mode(0o755)).unwrap();
    let script = node.script(&["bash", "-c", &format!("echo $BATCH >{}", node.path("batch"))]);
    assert_eq!(node.run(&script, 42, 0).status.code(), Some(0));
    assert_eq!(node.words("state/exit")[..3], ["42", "0", "0"]);
    assert_ne!(node.words("state/exit")[3], "", "when it ended");
}

#[test]
fn what_ended_well_has_done_so_though_it_is_killed_while_slurm_is_asked() {
    let node = Node::new();
    let says = format!("#!/bin/bash\nkill -KILL \"$(cat {})\"\n", node.path("batch"));
    fs::write(node.file("bin/scontrol"), says).unwrap();
    let mut script = node.script(&["bash", "-c", &format!("echo $BATCH >{}", node.path("batch"))]);
    // Its clock would outlive it, and hold on to what it prints to.
    script.soft_timeout = None;
    assert_eq!(node.run(&script, 42, 0).status.code(), None);
    assert_eq!(node.words("state/exit")[..3], ["42", "0", "0"]);
}
